package io.headgate.kernel.operators;

import io.headgate.kernel.plan.Route;
import io.headgate.kernel.rows.BytesEncoder;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.Header;
import io.headgate.kernel.rows.HeldEntry;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.PassingRows;
import io.headgate.kernel.rows.SegmentedRow;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.streaming.MapState;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessorWithInitialState;
import org.apache.spark.sql.streaming.TTLConfig;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Keeps the newest row of a table per key and attaches it to events of that key.
 *
 * <p>Rows come by the bucket of their key ({@link io.headgate.kernel.rows.Bucket}), and carry the key as their last segment.
 * Within one call, changes apply before events. Rows addressed to other operators pass through untouched.
 */
public final class EnrichProcessor
    extends StatefulProcessorWithInitialState<Integer, Tuple2<Integer, byte[]>, Tuple2<Integer, byte[]>, Tuple2<Integer, byte[]>> {
  /** Events of a key leave in the order of their sources. */
  private static final Comparator<byte[]> BY_KEY =
      ((Comparator<byte[]>) Envelope::compareLast).thenComparing(Envelope::comparePositions);

  private final int address;
  private final Layout input;
  private final Layout output;
  private final SchemaHistory history;
  private final Route matched;
  private final Route missing;

  /** By key; of the present bucket. */
  private transient MapState<byte[], byte[]> table;
  private transient TableChanges tableChanges;
  private transient RowCache recent;
  private transient SegmentedRow alone;
  private transient SegmentedRow together;
  private transient Header header;
  private transient PassingRows passing;

  /**
   * @param input what events look like
   * @param output the same with the table's row attached as the last segment
   * @param history every schema the table's rows have had; the last is the present one
   */
  public EnrichProcessor(int address, Layout input, Layout output, SchemaHistory history, Route matched, Route missing) {
    this.address = address;
    this.input = input;
    this.output = output;
    this.history = history;
    this.matched = matched;
    this.missing = missing;
  }

  @Override public void init(OutputMode mode, TimeMode time) {
    table = getHandle().getMapState("table", BytesEncoder.INSTANCE, BytesEncoder.INSTANCE, TTLConfig.NONE());
    tableChanges = new TableChanges(history);
    TaskContext task = TaskContext.get();
    recent = task == null ? RowCache.alone() : RowCache.of(getHandle().getQueryInfo(), address, task);
    alone = new SegmentedRow(input);
    together = new SegmentedRow(output);
    header = new Header();
    passing = new PassingRows();
  }

  /** Takes over a row of the table as an earlier run kept it. */
  @Override public void handleInitialState(Integer bucket, Tuple2<Integer, byte[]> held, TimerValues timers) {
    table.updateValue(HeldEntry.key(held._2()), HeldEntry.value(held._2()));
  }

  @Override public Iterator<Tuple2<Integer, byte[]>> handleInputRows(
      Integer bucket, Iterator<Tuple2<Integer, byte[]>> rows, TimerValues timers) {
    var out = new ArrayList<Tuple2<Integer, byte[]>>();
    var mine = new ArrayList<byte[]>();
    while (rows.hasNext()) {
      Tuple2<Integer, byte[]> row = rows.next();
      byte[] envelope = row._2();
      if (!Envelope.isFor(envelope, address)) passing.take(row, out);
      else if (Envelope.kind(envelope) == Envelope.KEYLESS) miss(envelope, bucket, out);
      else mine.add(envelope);
    }
    passing.leave(out);
    if (mine.size() > 1) mine.sort(BY_KEY);
    for (int from = 0, to; from < mine.size(); from = to) {
      to = Envelope.endOfRun(mine, from);
      take(mine.subList(from, to), bucket, out);
    }
    return CollectionConverters.asScala(out.iterator());
  }

  /** @param rows changes and events of one key */
  private void take(List<byte[]> rows, Integer bucket, List<Tuple2<Integer, byte[]>> out) {
    byte[] key = Envelope.last(rows.get(0));
    byte[] known = recent.get(key);
    byte[] before = known == null ? table.getValue(key) : known;
    List<byte[]> changes = null;
    for (byte[] row : rows) {
      if (Envelope.kind(row) == Envelope.EVENT) continue;
      if (changes == null) changes = new ArrayList<>(1);
      changes.add(row);
    }
    boolean asked = changes == null || changes.size() < rows.size();
    byte[] held = changes == null ? before : tableChanges.apply(changes, before);
    if (held != before) table.updateValue(key, held);
    // What no event asks for is left out: a table that is being loaded would only pass through.
    if (held != known && held != null && (asked || known != null)) recent.put(key, held);
    if (asked) answer(rows, held, bucket, out);
  }

  /** @param held what state has of the key; null for nothing */
  private void answer(List<byte[]> rows, byte[] held, Integer bucket, List<Tuple2<Integer, byte[]>> out) {
    boolean missed = held == null || TableRow.isDeleted(held);
    byte[] found = missed ? null : history.present(held);
    for (byte[] row : rows) {
      if (Envelope.kind(row) != Envelope.EVENT) continue;
      if (missed) miss(row, bucket, out);
      else match(row, found, bucket, out);
    }
  }

  private void match(byte[] event, byte[] found, Integer bucket, List<Tuple2<Integer, byte[]>> out) {
    together.read(event, input.segments());
    together.set(output.segments() - 1, found, TableRow.body(found), found.length - TableRow.body(found));
    header.read(event);
    matched.send(together, header, bucket, out::add);
  }

  private void miss(byte[] event, Integer bucket, List<Tuple2<Integer, byte[]>> out) {
    alone.read(event);
    header.read(event);
    missing.send(alone, header, bucket, out::add);
  }
}
