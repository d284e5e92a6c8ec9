package io.headgate.kernel.plan;

import io.headgate.kernel.json.BadRecord;
import java.io.Serializable;
import java.lang.reflect.Field;
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
import org.apache.spark.sql.catalyst.expressions.InterpretedMutableProjection;
import org.apache.spark.sql.catalyst.expressions.InterpretedUnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.GeneratedClass;
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
  record Stage(Seq<Expression> expressions, Seq<Attribute> input) implements Serializable {}

  private final Stage[] stages;
  private final StructType result;
  /** The SQL of each column as the user wrote it. */
  private final String[] texts;
  private transient UnsafeProjection[] projections;

  private RowProgram(List<Stage> stages, StructType result, List<String> texts) {
    this.stages = stages.toArray(Stage[]::new);
    this.result = result;
    this.texts = texts.toArray(String[]::new);
  }

  StructType result() {
    return result;
  }

  /** Runs on a row; the result is overwritten by the next call on this thread's copy. */
  UnsafeRow apply(InternalRow row) {
    if (projections == null) {
      var made = new UnsafeProjection[stages.length];
      for (int i = 0; i < stages.length; i++) made[i] = UnsafeProjection.create(stages[i].expressions, stages[i].input);
      projections = made;
    }
    UnsafeRow out = projections[0].apply(row);
    for (int i = 1; i < projections.length; i++) out = projections[i].apply(out);
    return out;
  }

  /**
   * Returns the SQL that fails on a row, for which {@link #apply} has thrown; rows behind it find nothing that it left.
   *
   * <p>Each column is computed by itself, one after the other.
   */
  String failing(InternalRow row) {
    InternalRow input = row;
    try {
      renew();
      for (int stage = 0; stage < stages.length; stage++) {
        Stage at = stages[stage];
        for (int i = 0; i < at.expressions.size(); i++)
          if (fails(at.expressions.apply(i), at.input, input)) return texts[column(stage, i)];
        input = projections[stage].apply(input);
      }
    } catch (Exception e) {
      // A stage fails as a whole where none of its columns does by itself.
      projections = null;
    }
    return String.join(", ", texts);
  }

  /**
   * Puts projections that have seen no row in the place of those that have.
   *
   * <p>Some functions keep what they were last called with, and {@code format_number} keeps a format that it could not read:
   * on the next row it would not fail. A generated class has an outer one that makes instances of it, as seen in Spark 4.3.0;
   * generating it anew takes a thousand times as long. Where Spark could not generate a class, it logs that for each attempt,
   * and the projection stays as it is.
   */
  private void renew() throws ReflectiveOperationException {
    for (int i = 0; i < projections.length; i++) {
      UnsafeProjection used = projections[i];
      if (used instanceof InterpretedUnsafeProjection) continue;
      Field references = used.getClass().getDeclaredField("references");
      references.setAccessible(true);
      String outer = used.getClass().getName().replaceFirst("\\$.*", "");
      var maker = (GeneratedClass) used.getClass().getClassLoader().loadClass(outer).getConstructor().newInstance();
      projections[i] = (UnsafeProjection) maker.generate((Object[]) references.get(used));
    }
  }

  private static boolean fails(Expression expression, Seq<Attribute> input, InternalRow row) {
    if (expression instanceof Attribute) return false;
    Seq<Expression> alone = CollectionConverters.asScala(List.of(expression.freshCopyIfContainsStatefulExpression())).toSeq();
    try {
      new InterpretedMutableProjection(alone, input).apply(row);
      return false;
    } catch (Exception e) {
      return true;
    }
  }

  /** Returns the column of the result that uses an expression of a stage. */
  private int column(int stage, int i) {
    if (stage == stages.length - 1) return i;
    Attribute made = ((NamedExpression) stages[stage].expressions.apply(i)).toAttribute();
    Seq<Expression> next = stages[stage + 1].expressions;
    for (int k = 0; k < next.size(); k++) if (next.apply(k).references().contains(made)) return column(stage + 1, k);
    return 0;
  }

  /**
   * @param texts the expressions as errors tell them
   * @param operator how errors name the step
   */
  static RowProgram compile(
      SparkSession spark, StructType schema, List<String> expressions, List<String> texts, String operator) {
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
    Project p = checked(selected.queryExecution().analyzed(), expressions, texts, "cannot plan " + operator);
    return new RowProgram(stages(optimized(spark, p, operator), operator), selected.schema(), texts);
  }

  /**
   * Returns analyzed expressions, or refuses those that do not give the same result each time, of one row alone.
   *
   * @param what opening words of the refusal
   */
  static Project checked(LogicalPlan analyzed, List<String> expressions, List<String> texts, String what) {
    if (!(analyzed instanceof Project p) || !(p.child() instanceof LeafNode)
        || p.expressions().exists(e -> e.containsPattern(TreePattern.PLAN_EXPRESSION())))
      throw new PlanException("BAD_EXPRESSION", what
          + ": it must compute each row on its own, without an aggregate, window, generator or subquery");
    for (NamedExpression e : CollectionConverters.asJava(p.projectList())) {
      if (!((Expression) e).deterministic() || ((Expression) e).containsPattern(TreePattern.CURRENT_LIKE()))
        throw new PlanException("BAD_EXPRESSION", what + ": '" + ((Expression) e).sql()
            + "' gives another result each time, so a replayed batch would have different rows");
    }
    for (int i = 0; i < texts.size(); i++)
      FormatChecks.check((Expression) p.projectList().apply(i), what + ": '" + texts.get(i) + "'");
    if (ClockWords.areIn(expressions, analyzed))
      throw new PlanException("BAD_EXPRESSION", what + ": 'now', 'today', 'tomorrow' and 'yesterday' are"
          + " another time after each start, so a replayed batch would have different rows");
    return p;
  }

  private static LogicalPlan optimized(SparkSession spark, Project analyzed, String operator) {
    var session = (org.apache.spark.sql.classic.SparkSession) spark;
    try {
      return org.apache.spark.sql.classic.Dataset.ofRows(session, SizeGuards.add(analyzed)).queryExecution().optimizedPlan();
    } catch (RuntimeException e) {
      // What is constant is computed here.
      throw new PlanException("BAD_EXPRESSION", "cannot plan " + operator + ": it fails on every row: "
          + RowFailure.of(BadRecord.Reason.EXPRESSION_FAILED, e).getMessage());
    }
  }

  static List<Stage> stages(LogicalPlan optimized, String operator) {
    var out = new LinkedList<Stage>();
    LogicalPlan at = optimized;
    while (at instanceof Project p) {
      var expressions = CollectionConverters.asJava(p.projectList()).stream().map(e -> (Expression) e).toList();
      out.addFirst(new Stage(CollectionConverters.asScala(expressions).toSeq(), p.child().output()));
      at = p.child();
    }
    if (!(at instanceof LeafNode))
      throw new PlanException("BAD_EXPRESSION", "cannot plan " + operator + ": it must compute each row on its own");
    if (out.isEmpty()) {
      var all = CollectionConverters.asJava(at.output()).stream().map(e -> (Expression) e).toList();
      out.add(new Stage(CollectionConverters.asScala(all).toSeq(), at.output()));
    }
    return out;
  }

  static String firstLine(String text) {
    int cut = text.indexOf('\n');
    return cut < 0 ? text : text.substring(0, cut);
  }
}
