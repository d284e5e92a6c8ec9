package io.headgate.kernel.plan;

import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import java.lang.ref.SoftReference;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.SparkConf;
import org.apache.spark.sql.AnalysisException;
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
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.Unevaluable;
import org.apache.spark.sql.catalyst.optimizer.ConstantFolding;
import org.apache.spark.sql.catalyst.optimizer.ReplaceExpressions;
import org.apache.spark.sql.catalyst.optimizer.RewriteWithExpression;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser$;
import org.apache.spark.sql.catalyst.plans.logical.LeafNode;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Compiles the conditions of rules over rows of one schema, each text once in a process, for all of its tasks.
 *
 * <p>Spark's analyzer takes some milliseconds for one expression, and hardly more for many: it goes through its own rules again
 * and again. So conditions are analyzed together, and by themselves where one of them is refused or concerns the others. A text
 * that no task has any more stays as long as memory lasts. Uses internals of Spark seen in 4.3.0.
 */
public final class RuleCompiler {
  /** How many conditions are analyzed at once. */
  private static final int TOGETHER = 128;
  private static final String NAME = "keep";
  private static final Map<StructType, RuleCompiler> ALL = new ConcurrentHashMap<>();

  private final StructType schema;
  private final Map<String, SoftReference<Compiled>> known = new HashMap<>();

  /** How many texts were compiled. */
  private long compiled;

  private RuleCompiler(StructType schema) {
    this.schema = schema;
  }

  /** @param schema the columns of the rows that conditions are asked about */
  public static RuleCompiler of(StructType schema) {
    return ALL.computeIfAbsent(schema, RuleCompiler::new);
  }

  /** Spark's rules for names, types and functions, without a session: functions are those that are built in. */
  private static final class Resolving {
    static final Analyzer ANALYZER = new Analyzer(new SessionCatalog(
        new InMemoryCatalog(new SparkConf(false), new Configuration(false)), FunctionRegistry.builtin(),
        TableFunctionRegistry.builtin()));
  }

  /** What became of a text: stages, or the reason why there are none. */
  public static final class Compiled {
    private final List<RowProgram.Stage> stages;
    private final String refusal;

    private Compiled(List<RowProgram.Stage> stages, String refusal) {
      this.stages = stages;
      this.refusal = refusal;
    }

    /** Returns a condition for one thread, or says why there is none. */
    public RuleCondition condition() throws BadRecord {
      if (stages == null) throw new BadRecord(Reason.BAD_RULE, refusal);
      return new RuleCondition(stages);
    }
  }

  private record Parsed(String sql, Expression expression) {}

  /** Returns what became of texts, by text. Of several tasks with the same texts, one compiles them, and the others wait. */
  public synchronized Map<String, Compiled> compile(Collection<String> texts) {
    known.values().removeIf(each -> each.get() == null);
    var out = new HashMap<String, Compiled>();
    var parsed = new ArrayList<Parsed>();
    for (String sql : new LinkedHashSet<>(texts)) {
      SoftReference<Compiled> reference = known.get(sql);
      Compiled before = reference == null ? null : reference.get();
      if (before != null) out.put(sql, before);
      else parse(sql, parsed, out);
    }
    compiled += parsed.size();
    for (int from = 0; from < parsed.size(); from += TOGETHER)
      analyze(parsed.subList(from, Math.min(from + TOGETHER, parsed.size())), out);
    out.forEach((sql, compiled) -> known.computeIfAbsent(sql, s -> new SoftReference<>(compiled)));
    return out;
  }

  public synchronized long compiled() {
    return compiled;
  }

  private static void parse(String sql, List<Parsed> parsed, Map<String, Compiled> out) {
    try {
      parsed.add(new Parsed(sql, CatalystSqlParser$.MODULE$.parseExpression(sql)));
    } catch (Exception | StackOverflowError e) {
      out.put(sql, refused(e));
    }
  }

  private void analyze(List<Parsed> rules, Map<String, Compiled> out) {
    try {
      List<LogicalPlan> analyzed = analyzed(rules);
      for (int i = 0; i < rules.size(); i++) out.put(rules.get(i).sql, finished(rules.get(i).sql, analyzed.get(i)));
    } catch (Exception | StackOverflowError e) {
      if (rules.size() == 1) {
        out.put(rules.get(0).sql, refused(e));
        return;
      }
      int half = rules.size() / 2;
      analyze(rules.subList(0, half), out);
      analyze(rules.subList(half, rules.size()), out);
    }
  }

  /** Returns the plan of each rule by itself; throws where one of them is refused, or changes what the others are. */
  private List<LogicalPlan> analyzed(List<Parsed> rules) {
    LogicalPlan plan = Resolving.ANALYZER.executeAndCheck(project(rules), new QueryPlanningTracker(scala.Option.empty()));
    if (rules.size() == 1) return List.of(plan);
    if (!(plan instanceof Project p) || !(p.child() instanceof LeafNode) || p.projectList().size() != rules.size())
      throw new PlanException("BAD_EXPRESSION", "the rules depend on each other");
    return CollectionConverters.asJava(p.projectList()).stream()
        .map(each -> (LogicalPlan) new Project(seq(List.of(each)), p.child())).toList();
  }

  private Project project(List<Parsed> rules) {
    List<Attribute> columns = CollectionConverters.asJava(DataTypeUtils.toAttributes(schema)).stream()
        .map(each -> (Attribute) each).toList();
    var input = new LocalRelation(seq(columns), seq(List.of()), false, scala.Option.empty());
    // One name for all: a rule that uses it is ambiguous among others, and so is looked at by itself.
    List<NamedExpression> named = rules.stream().map(each -> (NamedExpression) new Alias(
        each.expression, NAME, NamedExpression.newExprId(), seq(List.of()), scala.Option.empty(), seq(List.of()))).toList();
    return new Project(seq(named), input);
  }

  private static Compiled finished(String sql, LogicalPlan analyzed) {
    try {
      return new Compiled(stages(checked(sql, analyzed)), null);
    } catch (Exception | StackOverflowError e) {
      return refused(e);
    }
  }

  private static LogicalPlan checked(String sql, LogicalPlan analyzed) {
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

  private static Compiled refused(Throwable e) {
    return new Compiled(null, reason(e));
  }

  private static String reason(Throwable e) {
    if (e instanceof PlanException) return e.getMessage();
    if (e instanceof StackOverflowError) return "it is nested too deeply";
    if (e instanceof AnalysisException || e.getClass().getName().startsWith("org.apache.spark.sql"))
      return RowProgram.firstLine(e.getMessage().strip());
    return RowFailure.of(Reason.BAD_RULE, (Exception) e).getMessage();
  }

  private static <T> Seq<T> seq(List<T> values) {
    return CollectionConverters.asScala(values).toSeq();
  }
}
