package io.headgate.kernel.plan;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationDef;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.WithCTE;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import scala.Function1;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Lets several branches of a query read one named source. Uses internals of Spark seen in 4.3.0.
 *
 * <p>Spark refuses a name that stands twice in a query, even if both are the same source. So the source is put into a common
 * table expression that the branches refer to; its optimizer puts it back into each of them.
 */
final class SharedSources {
  private SharedSources() {}

  /** Returns the same query with every source in one place. */
  static Dataset<Row> share(Dataset<Row> rows) {
    var classic = (org.apache.spark.sql.classic.Dataset<Row>) rows;
    LogicalPlan plan = classic.queryExecution().analyzed();
    var definitions = new LinkedHashMap<Object, CTERelationDef>();
    LogicalPlan shared = plan.transformDown(new References(repeated(plan), definitions));
    if (definitions.isEmpty()) return rows;
    var all = CollectionConverters.asScala(new ArrayList<>(definitions.values())).toSeq();
    return org.apache.spark.sql.classic.Dataset.ofRows(classic.sparkSession(), new WithCTE(shared, all));
  }

  private static Map<Object, Integer> repeated(LogicalPlan plan) {
    var counts = new LinkedHashMap<Object, Integer>();
    for (LogicalPlan leaf : CollectionConverters.asJava(plan.collectLeaves()))
      if (leaf instanceof StreamingRelationV2 source) counts.merge(source.sourceIdentifyingName(), 1, Integer::sum);
    counts.values().removeIf(count -> count == 1);
    return counts;
  }

  private static final class References extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {
    private final Map<Object, Integer> repeated;
    private final Map<Object, CTERelationDef> definitions;

    References(Map<Object, Integer> repeated, Map<Object, CTERelationDef> definitions) {
      this.repeated = repeated;
      this.definitions = definitions;
    }

    @Override public boolean isDefinedAt(LogicalPlan plan) {
      return plan instanceof StreamingRelationV2 source && repeated.containsKey(source.sourceIdentifyingName());
    }

    @Override public <A extends LogicalPlan, B> B applyOrElse(A plan, Function1<A, B> otherwise) {
      return isDefinedAt(plan) ? (B) reference((StreamingRelationV2) (LogicalPlan) plan) : otherwise.apply(plan);
    }

    private LogicalPlan reference(StreamingRelationV2 source) {
      CTERelationDef definition = definitions.computeIfAbsent(source.sourceIdentifyingName(),
          name -> new CTERelationDef(source, CTERelationDef.newId(), Option.empty(), false, Option.empty(), false));
      var output = ((LogicalPlan) source).output();
      return new CTERelationRef(definition.id(), true, output, true, Option.empty(), false, Option.empty(), false);
    }
  }
}
