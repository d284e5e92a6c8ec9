package io.headgate.kernel.operators;

import io.headgate.kernel.plan.Route;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.Header;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessorWithInitialState;
import org.apache.spark.sql.streaming.TTLConfig;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.apache.spark.sql.streaming.ValueState;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Keeps the newest row of a table per key and attaches it to events of that key.
 *
 * <p>Within one call, changes apply before events. Rows addressed to other operators pass through untouched.
 */
public final class EnrichProcessor
    extends StatefulProcessorWithInitialState<byte[], Tuple2<byte[], byte[]>, Tuple2<byte[], byte[]>, Tuple2<byte[], byte[]>> {
  /**
   * Changes that a column orders stand by their place in the topic: of equal versions the last one there counts, and a
   * tombstone without a version ends what stood before it. The others stand by lane and sequence.
   */
  private static final Comparator<byte[]> BY_PLACE =
      Comparator.<byte[]>comparingInt(c -> Math.max(Envelope.lane(c), DecodeRecords.COLUMN_LANE))
          .thenComparingLong(c -> Envelope.lane(c) < 0 ? 0 : Envelope.sequence(c))
          .thenComparingInt(Envelope::partition).thenComparingLong(Envelope::offset);

  private final int address;
  private final Layout input;
  private final Layout output;
  private final SchemaHistory history;
  private final Route matched;
  private final Route missing;

  private transient ValueState<byte[]> table;
  private transient SegmentedRow alone;
  private transient SegmentedRow together;
  private transient Header header;

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
    table = getHandle().getValueState("table", Encoders.BINARY(), TTLConfig.NONE());
    alone = new SegmentedRow(input);
    together = new SegmentedRow(output);
    header = new Header();
  }

  /** Takes over a row of the table as an earlier run kept it: pairs of key and row in state. */
  @Override public void handleInitialState(byte[] key, Tuple2<byte[], byte[]> row, TimerValues timers) {
    table.update(row._2());
  }

  @Override public Iterator<Tuple2<byte[], byte[]>> handleInputRows(
      byte[] key, Iterator<Tuple2<byte[], byte[]>> rows, TimerValues timers) {
    var out = new ArrayList<Tuple2<byte[], byte[]>>();
    List<byte[]> changes = null;
    List<byte[]> events = null;
    while (rows.hasNext()) {
      Tuple2<byte[], byte[]> row = rows.next();
      byte[] envelope = row._2();
      byte kind = Envelope.kind(envelope);
      if (!Envelope.isFor(envelope, address)) {
        out.add(row);
      } else if (kind == Envelope.EVENT) {
        if (events == null) events = new ArrayList<>();
        events.add(envelope);
      } else if (kind == Envelope.KEYLESS) {
        miss(envelope, key, out);
      } else {
        if (changes == null) changes = new ArrayList<>(1);
        changes.add(envelope);
      }
    }
    if (changes != null || events != null) {
      byte[] held = changes == null ? table.get() : apply(changes);
      if (events != null) answer(events, held, key, out);
    }
    return CollectionConverters.asScala(out.iterator());
  }

  /** Brings state up to date and returns what it holds then; null for none. */
  private byte[] apply(List<byte[]> changes) {
    // Rows come out of a shuffle in any order. Their places decide, so that a replay ends in the same state.
    if (changes.size() > 1) changes.sort(BY_PLACE);
    byte[] held = table.get();
    byte[] before = held;
    for (byte[] change : changes) {
      int lane = Envelope.lane(change);
      long sequence = Envelope.sequence(change);
      long timestamp = Envelope.timestamp(change);
      if (lane == DecodeRecords.UNVERSIONED_LANE) {
        held = end(held, timestamp);
        continue;
      }
      if (held != null && !TableRow.replaces(lane, sequence, timestamp, held)) continue;
      boolean deleted = Envelope.kind(change) == Envelope.TOMBSTONE;
      held = deleted
          ? TableRow.of(history.current(), true, lane, sequence, timestamp, null, 0, 0)
          : TableRow.of(history.current(), false, lane, sequence, timestamp, change,
              Envelope.start(change, 0), Envelope.length(change, 0));
    }
    if (held != before) table.update(held);
    return held;
  }

  /** Returns the end of a row by a tombstone without a version: it takes the version of what it ends. */
  private byte[] end(byte[] held, long timestamp) {
    boolean versioned = held != null && TableRow.lane(held) == DecodeRecords.COLUMN_LANE;
    long version = versioned ? TableRow.sequence(held) : Long.MIN_VALUE;
    return TableRow.of(history.current(), true, DecodeRecords.COLUMN_LANE, version, timestamp, null, 0, 0);
  }

  private void answer(List<byte[]> events, byte[] held, byte[] key, List<Tuple2<byte[], byte[]>> out) {
    if (held == null || TableRow.isDeleted(held)) {
      for (byte[] event : events) miss(event, key, out);
      return;
    }
    byte[] row = history.present(held);
    int last = output.segments() - 1;
    together.set(last, row, TableRow.HEADER, row.length - TableRow.HEADER);
    for (byte[] event : events) {
      together.read(event);
      header.read(event);
      matched.send(together, header, key, out::add);
    }
  }

  private void miss(byte[] event, byte[] key, List<Tuple2<byte[], byte[]>> out) {
    alone.read(event);
    header.read(event);
    missing.send(alone, header, key, out::add);
  }
}
