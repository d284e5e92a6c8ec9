package io.headgate.kernel.operators;

import io.headgate.kernel.PortTally;
import io.headgate.kernel.broadcast.ControlBuckets;
import io.headgate.kernel.formats.ChangeDecoder;
import io.headgate.kernel.formats.RecordDecoder;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import io.headgate.kernel.json.DeadLetter;
import io.headgate.kernel.json.KeyText;
import io.headgate.kernel.json.MessageKey;
import io.headgate.kernel.plan.Placement;
import io.headgate.kernel.plan.Route;
import io.headgate.kernel.plan.RowFailure;
import io.headgate.kernel.rows.Bucket;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.Header;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.MetaRow;
import io.headgate.kernel.rows.RawRecord;
import io.headgate.kernel.rows.SegmentedRow;
import io.headgate.kernel.time.EventTime;
import io.headgate.kernel.time.GreatestTimes;
import io.headgate.kernel.time.TaskTimes;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.ShortType;
import scala.Tuple2;

/**
 * Turns records of one source into envelopes: rows on their way, or dead letters; each record becomes one or the other.
 *
 * <p>A record without a value is the end of a table's row, whose key its message key says ({@link MessageKey}). Where a column
 * orders the table's changes, such a record has no version. It then takes that of the row it ends: it wins over all that stood
 * before it in the topic, a change behind it with the same version or a newer one brings the key back, an older one never.
 */
public final class DecodeRecords implements MapPartitionsFunction<byte[], Tuple2<Integer, byte[]>> {
  /** The lane of a table whose changes are ordered by a column: they all share one. */
  static final int COLUMN_LANE = -1;

  /** The lane of a tombstone that ought to have a version and has none; state never holds it. */
  static final int UNVERSIONED_LANE = -2;

  /**
   * What a task needs to know of the source.
   *
   * @param topic what a record is of that does not name its topic
   * @param layout the rows' shape; a second segment is for what records say beside their value
   * @param time reads when a row happened; null where no operator of the flow asks
   * @param greatest is told the greatest of those times by partition; null where there are none
   * @param partitioned whether the topic has partitions
   * @param key the key of a table's rows; null for a stream
   * @param messageKey the same key as a record without a value gives it; null for a stream
   * @param version the column that orders a table's changes; null where their place in the topic does
   * @param operators addresses of the operators that hold the table's rows by key
   * @param broadcasts addresses of the operators of which each task has all of the table's rows
   * @param controls the buckets of those
   * @param job the job that dead letters are of
   * @param port where the rows of a table are counted; a stream's are by its route
   * @param refused where dead letters are counted
   */
  public record Source(
      String id, String topic, int number, Layout layout, RecordDecoder decoder, EventTime time,
      GreatestTimes greatest, boolean partitioned, KeyText key, MessageKey messageKey, Layout.Path version, int[] operators,
      int[] broadcasts, ControlBuckets controls,
      Route route, int deadLetters, String job, long maxRecord, Placement placement, PortTally tally, int port, int refused)
      implements Serializable {}

  private final Source source;

  public DecodeRecords(Source source) {
    this.source = source;
  }

  @Override public Iterator<Tuple2<Integer, byte[]>> call(Iterator<byte[]> records) {
    return new Rows(source, records);
  }

  /** One task's rows, made as they are asked for. */
  private static final class Rows implements Iterator<Tuple2<Integer, byte[]>> {
    private final Source source;
    private final Iterator<byte[]> records;
    private final ArrayDeque<Tuple2<Integer, byte[]>> ready = new ArrayDeque<>();
    private final Route.Out out = ready::add;
    private final Header header = new Header();
    private final SegmentedRow row;
    /** Null where records do not say how a database's rows changed. */
    private final ChangeDecoder changes;
    /** Null where nobody asked for it. */
    private final MetaRow meta;
    private final boolean present;
    /** Null where no operator of the flow asks. */
    private final TaskTimes times;

    Rows(Source source, Iterator<byte[]> records) {
      this.source = source;
      this.records = records;
      row = new SegmentedRow(source.layout);
      changes = source.decoder instanceof ChangeDecoder decoder ? decoder : null;
      meta = source.layout.segments() > 1 ? new MetaRow(source.topic) : null;
      times = source.time == null ? null : new TaskTimes(source.greatest, source.partitioned);
      header.source = source.number;
      present = source.placement.isPresentInTask();
    }

    @Override public boolean hasNext() {
      while (ready.isEmpty() && records.hasNext()) take(records.next());
      if (times != null && ready.isEmpty()) times.tell();
      return !ready.isEmpty();
    }

    @Override public Tuple2<Integer, byte[]> next() {
      return ready.removeFirst();
    }

    private void take(byte[] record) {
      header.partition = RawRecord.partition(record);
      header.offset = RawRecord.offset(record);
      header.timestamp = RawRecord.timestamp(record);
      header.lane = RawRecord.lane(record);
      header.sequence = RawRecord.sequence(record);
      header.eventTime = Envelope.NO_EVENT_TIME;
      try {
        decode(record);
      } catch (BadRecord e) {
        reject(record, e);
      } catch (Exception e) {
        reject(record, RowFailure.of(Reason.ROW_FAILED, e));
      }
    }

    private void reject(byte[] record, BadRecord why) {
      source.tally.count(source.refused);
      byte[] letter = letter(record, why);
      Integer bucket = present ? Bucket.spread(header) : Bucket.ofOffset(header.offset);
      ready.add(new Tuple2<>(bucket, header.envelope(Envelope.OUTPUT, source.deadLetters, letter, letter.length)));
    }

    private void decode(byte[] record) throws BadRecord {
      long size = RawRecord.size(record);
      if (size > source.maxRecord)
        throw new BadRecord(Reason.TOO_LARGE,
            "the record has " + size + " bytes, and the limit is " + source.maxRecord);
      int length = RawRecord.valueLength(record);
      if (length == RawRecord.NONE) {
        empty(record);
        return;
      }
      UnsafeRow decoded = source.decoder.decode(record, RawRecord.valueStart(record), length);
      if (changes != null && changes.isEmpty()) {
        empty(record);
        return;
      }
      if (decoded != null) row.set(decoded);
      if (changes != null && source.key != null) {
        change(record, decoded != null);
      } else if (source.key != null) {
        change();
      } else {
        if (meta != null) row.set(1, meta.of(record));
        event(record);
      }
    }

    private void event(byte[] record) throws BadRecord {
      if (source.time != null) {
        header.eventTime = source.time.of(row.segment(0));
        times.add(record, header.eventTime);
      }
      source.route.send(row, header, Placement.spread(present, header), out);
    }

    private void change() throws BadRecord {
      byte[] key = source.key.of(row);
      if (key == null) throw new BadRecord(Reason.NO_KEY, "no key: a key column is null or missing");
      Layout.Path version = source.version;
      if (version != null) {
        if (isNull(version))
          throw new BadRecord(Reason.MISSING_FIELD, "no version: column '" + version.name() + "' is null or missing");
        header.lane = COLUMN_LANE;
        header.sequence = number(version);
      }
      source.tally.count(source.port);
      send(key, source.decoder.isTombstone(), null);
    }

    /**
     * Takes a change of a database's row.
     *
     * @param known whether the record says which row; otherwise its message key does
     */
    private void change(byte[] record, boolean known) throws BadRecord {
      boolean gone = source.decoder.isTombstone();
      byte[] key = known ? source.key.of(row) : null;
      if (key == null && !gone) throw new BadRecord(Reason.NO_KEY, "no key: a key column is null or missing");
      if (key == null) key = messageKey(record);
      byte[] position = changes.position();
      source.tally.count(source.port);
      send(key, gone, position);
      UnsafeRow before = changes.before();
      if (before == null) return;
      row.set(before);
      byte[] left = source.key.of(row);
      if (left != null && !Arrays.equals(left, key)) send(left, true, position);
    }

    /** Sends a change of a table's row to the operators that hold it; of one that is gone there is only the key. */
    private void send(byte[] key, boolean gone, byte[] position) {
      for (int operator : source.operators) ready.add(new Tuple2<>(Bucket.of(key), envelope(operator, key, gone, position)));
      for (int operator : source.broadcasts) copy(envelope(operator, key, gone, position));
    }

    private byte[] envelope(int operator, byte[] key, boolean gone, byte[] position) {
      if (!gone) return row.pack(header, Envelope.CHANGE, operator, position, key);
      return position == null
          ? header.envelope(Envelope.TOMBSTONE, operator, key, key.length)
          : header.envelope(Envelope.TOMBSTONE, operator, position, key);
    }

    /** Sends a change of a broadcast table to each task. */
    private void copy(byte[] envelope) {
      for (Integer bucket : source.controls.all()) ready.add(new Tuple2<>(bucket, envelope));
    }

    /** Ends a table's row by a record that has no value; for a stream of changes, the one before it has said all. */
    private void empty(byte[] record) throws BadRecord {
      if (source.key == null && changes != null) return;
      if (source.key == null) throw new BadRecord(source.decoder.withoutValue(), "a record without a value");
      byte[] key = messageKey(record);
      if (source.version != null) header.lane = UNVERSIONED_LANE;
      source.tally.count(source.port);
      send(key, true, null);
    }

    private byte[] messageKey(byte[] record) throws BadRecord {
      int length = RawRecord.keyLength(record);
      if (length == RawRecord.NONE)
        throw new BadRecord(Reason.NO_KEY, "no key: a record without a value and without a message key");
      int start = RawRecord.keyStart(record);
      return changes == null ? source.messageKey.of(record, start, length) : changes.key(record, start, length);
    }

    private boolean isNull(Layout.Path path) {
      return row.segment(0).isNullAt(path.last());
    }

    private long number(Layout.Path path) {
      int i = path.last();
      if (path.type() instanceof IntegerType) return row.segment(0).getInt(i);
      if (path.type() instanceof ShortType) return row.segment(0).getShort(i);
      if (path.type() instanceof ByteType) return row.segment(0).getByte(i);
      return row.segment(0).getLong(i);
    }

    private byte[] letter(byte[] record, BadRecord why) {
      int named = RawRecord.topicLength(record);
      String topic = named == 0
          ? source.topic : new String(record, RawRecord.topicStart(record), named, StandardCharsets.UTF_8);
      int start = RawRecord.valueStart(record);
      int length = RawRecord.valueLength(record);
      byte[] raw = length == RawRecord.NONE ? null : source.decoder.shown(record, start, length);
      long size = RawRecord.size(record);
      // Another form than that of the record has a length of its own.
      if (raw != null && raw.length != Math.min(length, DeadLetter.RAW_LIMIT)) size = raw.length;
      return new DeadLetter(
          source.job, source.id, topic, null, header.partition, header.offset, header.timestamp,
          why.reason, why.getMessage(), size, raw).encode();
    }
  }
}
