package io.headgate.kernel.state;

import io.headgate.kernel.plan.SizeGuards;
import java.math.BigInteger;
import java.util.ArrayDeque;
import java.util.Set;
import java.util.function.Consumer;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.CallMethodViaReflection;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.jdk.javaapi.CollectionConverters;

/**
 * SQL of somebody who may see state and nothing else: one query over views. Uses internals of Spark seen in 4.3.0.
 *
 * <p>Spark's SQL can write, load code, run scripts and read any file. So a query may hold only the nodes that are named here;
 * whatever a later Spark adds is refused until it is named, too. Files as tables and variables of the process are shut off by
 * settings of the session.
 *
 * <p>A query may not take the reader from the others: one call of a function makes a limited number of bytes, and a query a
 * limited number of rows out of nothing. Each leaf of a query is one task, and the number of leaves is limited.
 */
public final class Question {
  private static final Set<String> NODES = Set.of(
      "Project", "Filter", "Aggregate", "Sort", "GlobalLimit", "LocalLimit", "Offset", "Tail", "Distinct", "Union", "Except",
      "Intersect", "Join", "LateralJoin", "AsOfJoin", "SubqueryAlias", "UnresolvedRelation", "UnresolvedSubqueryColumnAliases",
      "UnresolvedWith", "UnresolvedHaving", "UnresolvedInlineTable", "OneRowRelation", "Generate", "Pivot", "Unpivot", "Sample",
      "Window", "WithWindowDefinition", "GroupingSets", "LocalRelation", "UnresolvedTableValuedFunction");

  /** The most rows of one {@code range}. */
  private static final long MOST_RANGE = 1_000_000;
  /** The most views, ranges and lists of values in a query; the reader has as many threads for each query. */
  private static final int MOST_LEAVES = 16;

  private Question() {}

  /** Returns the result of a query; refuses anything else with a word on what it is. */
  public static Dataset<Row> ask(SparkSession spark, String sql) throws Exception {
    var classic = (org.apache.spark.sql.classic.SparkSession) spark;
    walk(classic.sessionState().sqlParser().parsePlan(sql), Question::checkNode);
    Dataset<Row> rows = spark.sql(sql);
    // Only here is every function known by what it does; nothing has been computed yet.
    LogicalPlan analyzed = ((org.apache.spark.sql.classic.Dataset<Row>) rows).queryExecution().analyzed();
    walk(analyzed, Question::checkFunction);
    walk(analyzed, Question::checkRange);
    int leaves = leavesOf(analyzed);
    if (leaves > MOST_LEAVES)
      throw new IllegalArgumentException("a query may name at most " + MOST_LEAVES + " views, got " + leaves);
    return org.apache.spark.sql.classic.Dataset.ofRows(classic, SizeGuards.addToAll(analyzed));
  }

  private static void walk(LogicalPlan plan, Consumer<Object> check) {
    var left = new ArrayDeque<Object>();
    left.add(plan);
    while (!left.isEmpty()) {
      Object next = left.poll();
      check.accept(next);
      var tree = (TreeNode<?>) next;
      left.addAll(CollectionConverters.asJava(tree.children()));
      for (Object inner : CollectionConverters.asJava(tree.innerChildren()))
        if (inner instanceof LogicalPlan || inner instanceof Expression) left.add(inner);
      if (next instanceof SubqueryExpression query) left.add(query.plan());
      if (next instanceof LogicalPlan node) left.addAll(CollectionConverters.asJava(node.expressions()));
    }
  }

  private static void checkNode(Object node) {
    String kind = node.getClass().getSimpleName().replace("$", "");
    if (node instanceof LogicalPlan && !NODES.contains(kind)) throw new IllegalArgumentException("the statement must be a query, got " + kind);
  }

  private static void checkFunction(Object expression) {
    // It calls any method of any class, under several names.
    if (expression instanceof CallMethodViaReflection)
      throw new IllegalArgumentException("functions that call Java, such as reflect, are not allowed here");
  }

  private static void checkRange(Object node) {
    if (!(node instanceof Range range)) return;
    if (range.numElements().bigInteger().compareTo(BigInteger.valueOf(MOST_RANGE)) > 0)
      throw new IllegalArgumentException("range must have at most " + MOST_RANGE + " rows, got " + range.numElements());
    if (range.numSlices().isDefined())
      throw new IllegalArgumentException("range must not have a number of partitions here");
  }

  private static int leavesOf(LogicalPlan plan) {
    int leaves = plan.children().isEmpty() ? 1 : 0;
    for (LogicalPlan child : CollectionConverters.asJava(plan.children())) leaves += leavesOf(child);
    for (Expression expression : CollectionConverters.asJava(plan.expressions())) leaves += leavesOf(expression);
    return leaves;
  }

  private static int leavesOf(Expression expression) {
    int leaves = expression instanceof SubqueryExpression query ? leavesOf((LogicalPlan) query.plan()) : 0;
    for (Expression child : CollectionConverters.asJava(expression.children())) leaves += leavesOf(child);
    return leaves;
  }
}
