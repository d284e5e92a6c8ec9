package io.headgate.kernel.operators;

import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import io.headgate.kernel.json.DeadLetter;
import io.headgate.kernel.json.JsonDecoder;
import io.headgate.kernel.json.KeyText;
import io.headgate.kernel.plan.Route;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.Header;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.io.Serializable;
import java.util.ArrayDeque;
import java.util.Iterator;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.TimestampType;
import scala.Tuple2;

/** Turns records of one source into envelopes: rows on their way, or dead letters; each record becomes one or the other. */
public final class DecodeRecords implements MapPartitionsFunction<RawRecord, Tuple2<byte[], byte[]>> {
  /** The lane of a table whose changes are ordered by a column: they all share one. */
  static final int COLUMN_LANE = -1;

  /**
   * What a task needs to know of the source.
   *
   * @param eventTime the column that says when a row happened; null where none is named
   * @param key the key of a table's rows; null for a stream
   * @param version the column that orders a table's changes; null where their place in the topic does
   * @param operators addresses of the operators that hold the table's rows
   */
  public record Source(
      String id, String topic, int number, Layout layout, JsonDecoder decoder, Layout.Path eventTime,
      KeyText key, Layout.Path version, int[] operators, Route route, int deadLetters, long maxRecord)
      implements Serializable {}

  private final Source source;

  public DecodeRecords(Source source) {
    this.source = source;
  }

  @Override public Iterator<Tuple2<byte[], byte[]>> call(Iterator<RawRecord> records) {
    return new Rows(source, records);
  }

  /** One task's rows, made as they are asked for. */
  private static final class Rows implements Iterator<Tuple2<byte[], byte[]>> {
    private final Source source;
    private final Iterator<RawRecord> records;
    private final ArrayDeque<Tuple2<byte[], byte[]>> ready = new ArrayDeque<>();
    private final Header header = new Header();
    private final SegmentedRow row;

    Rows(Source source, Iterator<RawRecord> records) {
      this.source = source;
      this.records = records;
      row = new SegmentedRow(source.layout);
      header.source = source.number;
    }

    @Override public boolean hasNext() {
      while (ready.isEmpty() && records.hasNext()) take(records.next());
      return !ready.isEmpty();
    }

    @Override public Tuple2<byte[], byte[]> next() {
      return ready.removeFirst();
    }

    private void take(RawRecord record) {
      header.partition = record.getPartition();
      header.offset = record.getOffset();
      header.timestamp = record.getTimestamp();
      header.lane = record.getLane();
      header.sequence = record.getSequence();
      header.eventTime = Envelope.NO_EVENT_TIME;
      try {
        if (record.getSize() > source.maxRecord)
          throw new BadRecord(Reason.TOO_LARGE,
              "a record of " + record.getSize() + " bytes, and at most " + source.maxRecord + " are taken");
        if (record.getValue() == null) throw new BadRecord(Reason.BAD_JSON, "a record without a value");
        UnsafeRow decoded = source.decoder.decode(record.getValue());
        row.set(decoded);
        if (source.key != null) change();
        else event();
      } catch (BadRecord e) {
        byte[] letter = letter(record, e);
        ready.add(new Tuple2<>(spread(), header.envelope(Envelope.OUTPUT, source.deadLetters, letter, letter.length)));
      }
    }

    private void event() {
      if (source.eventTime != null) {
        Long at = number(source.eventTime);
        if (at != null) header.eventTime = source.eventTime.type() instanceof TimestampType ? Math.floorDiv(at, 1000L) : at;
      }
      source.route.send(row, header, spread(), ready::add);
    }

    private void change() throws BadRecord {
      byte[] key = source.key.of(row);
      if (key == null) throw new BadRecord(Reason.NO_KEY, "no key: a key column is null or missing");
      if (source.version != null) {
        Long version = number(source.version);
        if (version == null)
          throw new BadRecord(Reason.MISSING_FIELD, "no version: column '" + source.version.name() + "' is null or missing");
        header.lane = COLUMN_LANE;
        header.sequence = version;
      }
      boolean gone = source.decoder.isTombstone();
      for (int operator : source.operators)
        ready.add(new Tuple2<>(key,
            gone ? header.envelope(Envelope.TOMBSTONE, operator) : row.pack(header, Envelope.CHANGE, operator)));
    }

    private Long number(Layout.Path path) {
      InternalRow at = row.segment(0);
      int i = path.last();
      if (at.isNullAt(i)) return null;
      if (path.type() instanceof IntegerType) return (long) at.getInt(i);
      if (path.type() instanceof ShortType) return (long) at.getShort(i);
      if (path.type() instanceof ByteType) return (long) at.getByte(i);
      return at.getLong(i);
    }

    /** Returns a key that spreads rows which have none over the tasks. */
    private byte[] spread() {
      return KeyText.digits(header.offset);
    }

    private byte[] letter(RawRecord record, BadRecord why) {
      return new DeadLetter(
          source.id, source.topic, record.getPartition(), record.getOffset(), record.getTimestamp(),
          why.reason, why.getMessage(), record.getSize(), record.getValue()).encode();
    }
  }
}
