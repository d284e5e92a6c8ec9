package io.headgate.kernel.broadcast;

import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.plan.RuleCondition;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.InterpretedOrdering;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.jdk.javaapi.CollectionConverters;

/** Makes rules of the rows of a broadcast table; a row is compiled once in a task, as long as it stays. */
final class LabelRules {
  private final LabelSpec spec;
  private final StructType columns;
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
    columns = spec.input().schema();
    StructType schema = spec.rules().schema();
    keyPlaces = spec.rules().key().stream().mapToInt(schema::fieldIndex).toArray();
    keyTypes = Arrays.stream(keyPlaces).mapToObj(place -> schema.fields()[place]).map(StructField::dataType).toArray(DataType[]::new);
    order = InterpretedOrdering.forSchema(CollectionConverters.asScala(List.of(keyTypes)).toSeq());
  }

  /** Returns the rules of a table that have a condition, in the order of their keys. */
  @SuppressWarnings("unchecked")
  List<Rule> of(BroadcastRows rows) {
    if (rows.summary() != null) return (List<Rule>) rows.summary();
    var out = new ArrayList<Rule>();
    var row = new UnsafeRow(spec.rules().schema().length());
    for (BroadcastRows.Entry entry : rows.all()) {
      if (entry.made == null) {
        entry.readInto(row);
        entry.made = rule(row);
      }
      var rule = (Rule) entry.made;
      if (rule.condition != null) out.add(rule);
    }
    out.sort((a, b) -> order.compare(a.key, b.key));
    rows.summarize(out);
    return out;
  }

  private Rule rule(UnsafeRow row) {
    UnsafeRow own = row.copy();
    var key = new Object[keyPlaces.length];
    for (int i = 0; i < key.length; i++) key[i] = own.get(keyPlaces[i], keyTypes[i]);
    String sql = own.isNullAt(spec.when()) ? null : own.getUTF8String(spec.when()).toString();
    Object label = own.isNullAt(spec.label()) ? null : own.get(spec.label(), spec.labelType());
    RuleCondition condition;
    try {
      condition = compile(own);
    } catch (BadRecord e) {
      // Its dead letter was written when it came.
      condition = null;
    }
    return new Rule(new GenericInternalRow(key), sql, condition, label);
  }

  /** Returns the condition of a rule, or says why it has none. */
  RuleCondition compile(UnsafeRow row) throws BadRecord {
    if (row.isNullAt(spec.when())) throw new BadRecord(BadRecord.Reason.BAD_RULE, "it has no condition");
    UTF8String sql = row.getUTF8String(spec.when());
    return RuleCondition.compile(columns, sql.toString());
  }
}
