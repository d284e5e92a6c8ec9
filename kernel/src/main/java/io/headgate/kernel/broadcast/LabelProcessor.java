package io.headgate.kernel.broadcast;

import io.headgate.kernel.broadcast.LabelRules.Rule;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.plan.RowFailure;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.Header;
import io.headgate.kernel.rows.HeldEntry;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.PassingRows;
import io.headgate.kernel.rows.SegmentedRow;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessorWithInitialState;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Adds to each event the labels of all rules that hold for it; each task has all rules.
 *
 * <p>Changes of rules come under the task's control bucket ({@link ControlBuckets}), before the events of a batch. Rows addressed
 * to other operators pass through untouched.
 */
public final class LabelProcessor
    extends StatefulProcessorWithInitialState<Integer, Tuple2<Integer, byte[]>, Tuple2<Integer, byte[]>, Tuple2<Integer, byte[]>> {
  private final LabelSpec spec;

  private transient BroadcastTable table;
  private transient LabelRules rules;
  private transient SegmentedRow event;
  private transient SegmentedRow rule;
  private transient SegmentedRow result;
  private transient GenericInternalRow labels;
  private transient JoinedRow joined;
  private transient UnsafeProjection packed;
  private transient Header header;
  private transient PassingRows passing;

  public LabelProcessor(LabelSpec spec) {
    this.spec = spec;
  }

  public LabelSpec spec() {
    return spec;
  }

  @Override public void init(OutputMode mode, TimeMode time) {
    table = new BroadcastTable(getHandle(), spec.rules(), spec.address());
    rules = new LabelRules(spec);
    event = new SegmentedRow(spec.input());
    rule = new SegmentedRow(Layout.of(spec.rules().schema()));
    result = new SegmentedRow(Layout.of(spec.output()));
    labels = new GenericInternalRow(1);
    joined = new JoinedRow();
    packed = UnsafeProjection.create(spec.output());
    header = new Header();
    passing = new PassingRows();
  }

  /** Takes over a rule as an earlier run kept it. */
  @Override public void handleInitialState(Integer bucket, Tuple2<Integer, byte[]> held, TimerValues timers) {
    table.put(HeldEntry.key(held._2()), HeldEntry.value(held._2()));
  }

  @Override public Iterator<Tuple2<Integer, byte[]>> handleInputRows(
      Integer bucket, Iterator<Tuple2<Integer, byte[]>> rows, TimerValues timers) {
    var out = new ArrayList<Tuple2<Integer, byte[]>>();
    var mine = new ArrayList<byte[]>();
    while (rows.hasNext()) {
      Tuple2<Integer, byte[]> row = rows.next();
      if (Envelope.isFor(row._2(), spec.address())) mine.add(row._2());
      else passing.take(row, out);
    }
    passing.leave(out);
    if (ControlBuckets.isControl(bucket)) {
      change(bucket, mine, out);
    } else if (!mine.isEmpty()) {
      // Rows come out of a shuffle in any order.
      mine.sort(Envelope::comparePositions);
      List<Rule> all = rules.of(table.rows());
      for (byte[] each : mine) label(each, all, bucket, out);
    }
    return CollectionConverters.asScala(out.iterator());
  }

  private void change(Integer bucket, List<byte[]> changes, List<Tuple2<Integer, byte[]>> out) {
    if (changes.isEmpty()) return;
    table.apply(bucket, changes);
    // All tasks have the same rules: one of them writes what is wrong with one.
    if (bucket != ControlBuckets.FIRST) return;
    changes.sort(Envelope::comparePositions);
    changes.removeIf(change -> Envelope.kind(change) != Envelope.CHANGE);
    LabelRules.Conditions conditions = rules.compile(changes.stream().map(change -> readRule(change).copy()).toList());
    for (byte[] change : changes) check(change, conditions, bucket, out);
  }

  private UnsafeRow readRule(byte[] change) {
    rule.read(change);
    return rule.segment(0);
  }

  private void check(
      byte[] change, LabelRules.Conditions conditions, Integer bucket, List<Tuple2<Integer, byte[]>> out) {
    UnsafeRow row = readRule(change);
    try {
      conditions.of(row);
    } catch (BadRecord e) {
      header.read(change);
      String sql = row.isNullAt(spec.when()) ? null : row.getUTF8String(spec.when()).toString();
      spec.refused().reject(e, sql, rule, header, bucket, out::add);
    }
  }

  private void label(byte[] envelope, List<Rule> all, Integer bucket, List<Tuple2<Integer, byte[]>> out) {
    event.read(envelope);
    header.read(envelope);
    var found = new ArrayList<Object>();
    for (Rule each : all) {
      try {
        if (each.condition().holds(event)) found.add(each.label());
      } catch (Exception e) {
        BadRecord why = RowFailure.of(BadRecord.Reason.EXPRESSION_FAILED, e);
        spec.failing().reject(why, each.sql(), event, header, bucket, out::add);
        return;
      }
    }
    labels.update(0, new GenericArrayData(found.toArray()));
    result.set(packed.apply(joined.apply(event, labels)));
    spec.out().send(result, header, bucket, out::add);
  }
}
