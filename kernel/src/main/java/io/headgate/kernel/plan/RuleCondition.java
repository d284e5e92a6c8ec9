package io.headgate.kernel.plan;

import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import java.util.List;
import java.util.Locale;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.SparkConf;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry;
import org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry;
import org.apache.spark.sql.catalyst.catalog.InMemoryCatalog;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.CallMethodViaReflection;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InterpretedMutableProjection;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.Unevaluable;
import org.apache.spark.sql.catalyst.optimizer.ConstantFolding;
import org.apache.spark.sql.catalyst.optimizer.ReplaceExpressions;
import org.apache.spark.sql.catalyst.optimizer.RewriteWithExpression;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser$;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A SQL condition over one row that arrives as data: resolved where it arrives, which is in a task, and interpreted.
 *
 * <p>A {@link RowProgram} is compiled once for a flow, into a class; of rules there may be thousands, which come and go. For one
 * thread at a time. Uses internals of Spark seen in 4.3.0.
 */
public final class RuleCondition {
  private static final String NAME = "keep";

  private final List<RowProgram.Stage> stages;
  /** Null once one has failed: some functions keep what they failed on. */
  private List<InterpretedMutableProjection> projections;

  private RuleCondition(List<RowProgram.Stage> stages) {
    this.stages = stages;
  }

  /** Spark's rules for names, types and functions, without a session: functions are those that are built in. */
  private static final class Resolving {
    static final Analyzer ANALYZER = new Analyzer(new SessionCatalog(
        new InMemoryCatalog(new SparkConf(false), new Configuration(false)), FunctionRegistry.builtin(),
        TableFunctionRegistry.builtin()));
  }

  /**
   * Returns the condition of a rule, or says why there is none.
   *
   * @param schema the columns of the rows that it is asked about
   */
  public static RuleCondition compile(StructType schema, String sql) throws BadRecord {
    try {
      return new RuleCondition(stages(resolved(schema, sql)));
    } catch (PlanException e) {
      throw new BadRecord(Reason.BAD_RULE, e.getMessage());
    } catch (StackOverflowError e) {
      throw new BadRecord(Reason.BAD_RULE, "it is nested too deeply");
    } catch (Exception e) {
      if (e instanceof AnalysisException || e.getClass().getName().startsWith("org.apache.spark.sql"))
        throw new BadRecord(Reason.BAD_RULE, RowProgram.firstLine(e.getMessage().strip()));
      throw new BadRecord(Reason.BAD_RULE, RowFailure.of(Reason.BAD_RULE, e).getMessage());
    }
  }

  private static LogicalPlan resolved(StructType schema, String sql) {
    Expression parsed = CatalystSqlParser$.MODULE$.parseExpression(sql);
    List<Attribute> columns = CollectionConverters.asJava(DataTypeUtils.toAttributes(schema)).stream()
        .map(each -> (Attribute) each).toList();
    var input = new LocalRelation(seq(columns), seq(List.of()), false, scala.Option.empty());
    var named = new Alias(parsed, NAME, NamedExpression.newExprId(), seq(List.of()), scala.Option.empty(), seq(List.of()));
    LogicalPlan analyzed = Resolving.ANALYZER.executeAndCheck(
        new Project(seq(List.<NamedExpression>of(named)), input), new QueryPlanningTracker(scala.Option.empty()));
    Project checked = RowProgram.checked(analyzed, List.of(sql), List.of(sql), "it is refused");
    var condition = (Expression) checked.projectList().apply(0);
    if (!(condition.dataType() instanceof BooleanType))
      throw new PlanException("BAD_EXPRESSION", "it is " + condition.dataType().sql() + ", not a condition");
    if (condition.exists(e -> e instanceof CallMethodViaReflection))
      throw new PlanException("BAD_EXPRESSION", "functions that call Java, such as reflect, are not allowed in a rule");
    // What Spark's optimizer does for correctness, and what is constant.
    return ConstantFolding.apply(RewriteWithExpression.apply(ReplaceExpressions.apply(SizeGuards.add(checked))));
  }

  private static List<RowProgram.Stage> stages(LogicalPlan plan) {
    List<RowProgram.Stage> stages = RowProgram.stages(plan, "the rule");
    for (RowProgram.Stage stage : stages)
      for (Expression each : CollectionConverters.asJava(stage.expressions()))
        each.foreach(e -> {
          if (e instanceof Unevaluable && !(e instanceof Attribute))
            throw new PlanException("BAD_EXPRESSION", e.prettyName().toLowerCase(Locale.ROOT) + " cannot be used in a rule");
          return null;
        });
    return stages;
  }

  /** Returns whether it holds for a row; a condition that is null does not. Throws what Spark does where it fails. */
  public boolean holds(InternalRow row) {
    if (projections == null) projections = stages.stream().map(RuleCondition::projection).toList();
    InternalRow at = row;
    try {
      for (InterpretedMutableProjection stage : projections) at = stage.apply(at);
    } catch (Exception e) {
      projections = null;
      throw e;
    }
    return !at.isNullAt(0) && at.getBoolean(0);
  }

  private static InterpretedMutableProjection projection(RowProgram.Stage stage) {
    List<Expression> own = CollectionConverters.asJava(stage.expressions()).stream().map(e -> (Expression) e.clone()).toList();
    return new InterpretedMutableProjection(seq(own), stage.input());
  }

  private static <T> Seq<T> seq(List<T> values) {
    return CollectionConverters.asScala(values).toSeq();
  }
}
