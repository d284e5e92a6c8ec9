package io.headgate.kernel.plan;

import java.io.Serializable;
import java.util.LinkedList;
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
import org.apache.spark.sql.catalyst.plans.logical.LeafNode;
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
  /** One projection; Spark may split a program into several, so that what is used twice is computed once. */
  private record Stage(Seq<Expression> expressions, Seq<Attribute> input) implements Serializable {}

  private final Stage[] stages;
  private final StructType result;
  private transient UnsafeProjection[] projections;

  private RowProgram(List<Stage> stages, StructType result) {
    this.stages = stages.toArray(Stage[]::new);
    this.result = result;
  }

  StructType result() {
    return result;
  }

  /** Runs on a row; the result is overwritten by the next call on this thread's copy. */
  UnsafeRow apply(InternalRow row) {
    if (projections == null) {
      projections = new UnsafeProjection[stages.length];
      for (int i = 0; i < stages.length; i++)
        projections[i] = UnsafeProjection.create(stages[i].expressions, stages[i].input);
    }
    UnsafeRow out = projections[0].apply(row);
    for (int i = 1; i < projections.length; i++) out = projections[i].apply(out);
    return out;
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
    if (!(analyzed instanceof Project p) || !(p.child() instanceof LeafNode)
        || p.expressions().exists(e -> e.containsPattern(TreePattern.PLAN_EXPRESSION())))
      throw new PlanException("BAD_EXPRESSION", "cannot plan " + operator
          + ": it does not compute each row by itself (an aggregate, a window, a generator or a subquery)");
    for (NamedExpression e : CollectionConverters.asJava(p.projectList())) {
      if (!((Expression) e).deterministic() || ((Expression) e).containsPattern(TreePattern.CURRENT_LIKE()))
        throw new PlanException("BAD_EXPRESSION", "cannot plan " + operator + ": '" + ((Expression) e).sql()
            + "' gives another result each time, so a replayed batch would make other rows");
    }
    if (ClockWords.areIn(expressions, analyzed))
      throw new PlanException("BAD_EXPRESSION", "cannot plan " + operator + ": 'now', 'today', 'tomorrow' and 'yesterday' are"
          + " another time after each start, so a replayed batch would make other rows");
    return new RowProgram(stages(selected.queryExecution().optimizedPlan(), operator), selected.schema());
  }

  private static List<Stage> stages(LogicalPlan optimized, String operator) {
    var out = new LinkedList<Stage>();
    LogicalPlan at = optimized;
    while (at instanceof Project p) {
      var expressions = CollectionConverters.asJava(p.projectList()).stream().map(e -> (Expression) e).toList();
      out.addFirst(new Stage(CollectionConverters.asScala(expressions).toSeq(), p.child().output()));
      at = p.child();
    }
    if (!(at instanceof LeafNode))
      throw new PlanException("BAD_EXPRESSION", "cannot plan " + operator + ": it does not compute each row by itself");
    if (out.isEmpty()) {
      var all = CollectionConverters.asJava(at.output()).stream().map(e -> (Expression) e).toList();
      out.add(new Stage(CollectionConverters.asScala(all).toSeq(), at.output()));
    }
    return out;
  }

  private static String firstLine(String text) {
    int cut = text.indexOf('\n');
    return cut < 0 ? text : text.substring(0, cut);
  }
}
