package io.headgate.kernel.broadcast;

import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.plan.RuleCompiler;
import io.headgate.kernel.plan.RuleCondition;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.InterpretedOrdering;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/** Makes rules of the rows of a broadcast table; a row is made once in a task, as long as it stays. */
final class LabelRules {
  private final LabelSpec spec;
  private final RuleCompiler compiler;
  private final int[] keyPlaces;
  private final DataType[] keyTypes;
  private final InterpretedOrdering order;

  /**
   * A rule.
   *
   * @param condition null where the SQL cannot be compiled: the rule holds for no event
   * @param label as Spark's rows have it
   */
  record Rule(InternalRow key, String sql, RuleCondition condition, Object label) {}

  LabelRules(LabelSpec spec) {
    this.spec = spec;
    compiler = RuleCompiler.of(spec.input().schema());
    StructType schema = spec.rules().schema();
    keyPlaces = spec.rules().key().stream().mapToInt(schema::fieldIndex).toArray();
    keyTypes = Arrays.stream(keyPlaces).mapToObj(place -> schema.fields()[place]).map(StructField::dataType).toArray(DataType[]::new);
    order = InterpretedOrdering.forSchema(CollectionConverters.asScala(List.of(keyTypes)).toSeq());
  }

  /** Returns the rules of a table that have a condition, in the order of their keys. */
  @SuppressWarnings("unchecked")
  List<Rule> of(BroadcastRows rows) {
    if (rows.summary() != null) return (List<Rule>) rows.summary();
    List<Unmade> unmade = unmade(rows);
    Conditions conditions = compile(unmade.stream().map(Unmade::row).toList());
    for (Unmade each : unmade) each.entry.made = rule(each.row, conditions);
    var out = new ArrayList<Rule>();
    for (BroadcastRows.Entry entry : rows.all()) {
      var rule = (Rule) entry.made;
      if (rule.condition != null) out.add(rule);
    }
    out.sort((a, b) -> order.compare(a.key, b.key));
    rows.summarize(out);
    return out;
  }

  private record Unmade(BroadcastRows.Entry entry, UnsafeRow row) {}

  private List<Unmade> unmade(BroadcastRows rows) {
    var out = new ArrayList<Unmade>();
    var row = new UnsafeRow(spec.rules().schema().length());
    for (BroadcastRows.Entry entry : rows.all()) {
      if (entry.made != null) continue;
      entry.readInto(row);
      out.add(new Unmade(entry, row.copy()));
    }
    return out;
  }

  private Rule rule(UnsafeRow row, Conditions conditions) {
    var key = new Object[keyPlaces.length];
    for (int i = 0; i < key.length; i++) key[i] = row.get(keyPlaces[i], keyTypes[i]);
    Object label = row.isNullAt(spec.label()) ? null : row.get(spec.label(), spec.labelType());
    RuleCondition condition;
    try {
      condition = conditions.of(row);
    } catch (BadRecord e) {
      // Its dead letter was written when it came.
      condition = null;
    }
    return new Rule(new GenericInternalRow(key), sql(row), condition, label);
  }

  private String sql(UnsafeRow row) {
    return row.isNullAt(spec.when()) ? null : row.getUTF8String(spec.when()).toString();
  }

  /** Compiles the conditions of rules. */
  Conditions compile(List<UnsafeRow> rows) {
    return new Conditions(compiler.compile(rows.stream().map(this::sql).filter(Objects::nonNull).toList()));
  }

  /** The conditions of some rules. */
  final class Conditions {
    private final Map<String, RuleCompiler.Compiled> bySql;

    private Conditions(Map<String, RuleCompiler.Compiled> bySql) {
      this.bySql = bySql;
    }

    /** Returns the condition of a rule, or says why it has none. */
    RuleCondition of(UnsafeRow row) throws BadRecord {
      String sql = sql(row);
      if (sql == null) throw new BadRecord(BadRecord.Reason.BAD_RULE, "it has no condition");
      return bySql.get(sql).condition();
    }
  }
}
