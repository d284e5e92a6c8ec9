package io.headgate.kernel.plan;

import java.io.Serializable;
import java.util.List;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * SQL expressions over one row, resolved by Spark's analyzer and run by its generated projections.
 *
 * <p>Only what gives the same result each time is taken: a replayed batch must make the same rows.
 */
final class RowProgram implements Serializable {
  private final Seq<Expression> expressions;
  private final Seq<Attribute> input;
  private final StructType result;
  private transient UnsafeProjection projection;

  private RowProgram(Seq<Expression> expressions, Seq<Attribute> input, StructType result) {
    this.expressions = expressions;
    this.input = input;
    this.result = result;
  }

  StructType result() {
    return result;
  }

  /** Runs on a row; the result is overwritten by the next call on this thread's copy. */
  UnsafeRow apply(InternalRow row) {
    if (projection == null) projection = UnsafeProjection.create(expressions, input);
    return projection.apply(row);
  }

  /** @param operator how errors name the step */
  static RowProgram compile(SparkSession spark, StructType schema, List<String> expressions, String operator) {
    Dataset<Row> input = spark.createDataFrame(new JavaSparkContext(spark.sparkContext()).<Row>emptyRDD(), schema);
    org.apache.spark.sql.classic.Dataset<Row> selected;
    try {
      selected = (org.apache.spark.sql.classic.Dataset<Row>) input.selectExpr(expressions.toArray(String[]::new));
      // Analysis is lazy in places: asking for the plan brings every error here.
      selected.queryExecution().assertAnalyzed();
    } catch (Exception e) {
      if (e instanceof AnalysisException || e.getClass().getName().startsWith("org.apache.spark.sql"))
        throw new PlanException("BAD_EXPRESSION", "cannot plan " + operator + ": " + firstLine(e.getMessage()));
      throw e;
    }
    LogicalPlan analyzed = selected.queryExecution().analyzed();
    if (!(analyzed instanceof Project p) || p.child() instanceof Project)
      throw new PlanException("BAD_EXPRESSION", "cannot plan " + operator
          + ": it does not compute each row by itself (an aggregate, a window, a generator or a subquery)");
    for (NamedExpression e : CollectionConverters.asJava(p.projectList())) {
      if (!((Expression) e).deterministic() || ((Expression) e).containsPattern(TreePattern.CURRENT_LIKE()))
        throw new PlanException("BAD_EXPRESSION", "cannot plan " + operator + ": '" + ((Expression) e).sql()
            + "' gives another result each time, so a replayed batch would make other rows");
    }
    LogicalPlan optimized = selected.queryExecution().optimizedPlan();
    LogicalPlan leaf = optimized instanceof Project o ? o.child() : optimized;
    var all = optimized instanceof Project o
        ? CollectionConverters.asJava(o.projectList()).stream().map(e -> (Expression) e).toList()
        : CollectionConverters.asJava(optimized.output()).stream().map(e -> (Expression) e).toList();
    return new RowProgram(
        CollectionConverters.asScala(all).toSeq(), leaf.output(), selected.schema());
  }

  private static String firstLine(String text) {
    int cut = text.indexOf('\n');
    return cut < 0 ? text : text.substring(0, cut);
  }
}
