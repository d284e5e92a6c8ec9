package io.headgate.kernel.joins;

import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.Header;
import java.util.Arrays;
import java.util.Comparator;

/**
 * A row of one side that waits for others: where it comes from, when it happened, its packed columns.
 *
 * <p>In state, numbers in as few bytes as they take:
 *
 * <pre>
 * u8 flags (1: right side, 2: matched, 4: has an ordinal, 8: has a sequence that is not its offset, 16: has a lane)
 * time, as the difference to the row before   timestamp, as the difference to the time   source   partition   offset
 * sequence, lane and ordinal as the flags say   length of the packed row, that
 * </pre>
 */
final class JoinRow {
  static final int LEFT = 0;
  static final int RIGHT = 1;

  /** The order in which rows of a side are looked at and emitted: the same in every replay. */
  static final Comparator<JoinRow> BY_TIME = JoinRow::compare;

  /** The order of a row that state has. */
  static final int STORED = -1;

  private static final int ON_RIGHT = 1;
  private static final int MATCHED = 2;
  private static final int HAS_ORDINAL = 4;
  private static final int HAS_SEQUENCE = 8;
  private static final int HAS_LANE = 16;
  /** What a row takes in state beside its packed columns, at most. */
  private static final int OVERHEAD = 64;

  int side;
  boolean matched;
  long time;
  byte[] bytes;
  int start;
  int length;
  /** The place among the rows that arrive in a call; {@link #STORED} for others. */
  int order = STORED;
  /** Null for a row in the key's record. */
  JoinPage page;

  private int source;
  private int partition;
  private int lane;
  private long offset;
  private long timestamp;
  private long sequence;
  private long ordinal;

  /** Returns an arriving row, whose columns the caller fills in. */
  static JoinRow arriving(byte[] envelope, int side, int order) {
    var row = new JoinRow();
    row.side = side;
    row.order = order;
    row.time = Envelope.eventTime(envelope);
    row.source = Envelope.source(envelope);
    row.partition = Envelope.partition(envelope);
    row.lane = Envelope.lane(envelope);
    row.offset = Envelope.offset(envelope);
    row.timestamp = Envelope.timestamp(envelope);
    row.sequence = Envelope.sequence(envelope);
    row.ordinal = Envelope.ordinal(envelope);
    return row;
  }

  static JoinRow read(StateBytes from, byte[] bytes, long timeBefore) {
    var row = new JoinRow();
    int flags = from.getByte();
    row.side = flags & ON_RIGHT;
    row.matched = (flags & MATCHED) != 0;
    row.time = timeBefore + from.getNumber();
    row.timestamp = row.time + from.getNumber();
    row.source = (int) from.getCount();
    row.partition = (int) from.getNumber();
    row.offset = from.getNumber();
    row.sequence = (flags & HAS_SEQUENCE) != 0 ? from.getNumber() : row.offset;
    row.lane = (flags & HAS_LANE) != 0 ? (int) from.getNumber() : 0;
    row.ordinal = (flags & HAS_ORDINAL) != 0 ? from.getCount() : 0;
    row.length = (int) from.getCount();
    row.start = from.position();
    row.bytes = bytes;
    from.skip(row.length);
    return row;
  }

  void write(StateBytes into, long timeBefore) {
    int flags = side;
    if (matched) flags |= MATCHED;
    if (ordinal != 0) flags |= HAS_ORDINAL;
    if (sequence != offset) flags |= HAS_SEQUENCE;
    if (lane != 0) flags |= HAS_LANE;
    into.putByte(flags);
    into.putNumber(time - timeBefore);
    into.putNumber(timestamp - time);
    into.putCount(source);
    into.putNumber(partition);
    into.putNumber(offset);
    if (sequence != offset) into.putNumber(sequence);
    if (lane != 0) into.putNumber(lane);
    if (ordinal != 0) into.putCount(ordinal);
    into.putCount(length);
    into.putRaw(bytes, start, length);
  }

  int size() {
    return length + OVERHEAD;
  }

  /** Puts where the row comes from and when it happened into a header, without flags. */
  void describe(Header header) {
    header.source = source;
    header.partition = partition;
    header.lane = lane;
    header.offset = offset;
    header.timestamp = timestamp;
    header.sequence = sequence;
    header.ordinal = ordinal;
    header.eventTime = time;
    header.flags = 0;
  }

  private static int compare(JoinRow a, JoinRow b) {
    int by = Long.compare(a.time, b.time);
    if (by == 0) by = Integer.compare(a.source, b.source);
    if (by == 0) by = Integer.compare(a.partition, b.partition);
    if (by == 0) by = Long.compare(a.offset, b.offset);
    if (by == 0) by = Long.compare(a.sequence, b.sequence);
    if (by == 0) by = Integer.compare(a.lane, b.lane);
    if (by == 0) by = Long.compare(a.ordinal, b.ordinal);
    if (by != 0) return by;
    return Arrays.compareUnsigned(
        a.bytes, a.start, a.start + a.length, b.bytes, b.start, b.start + b.length);
  }
}
