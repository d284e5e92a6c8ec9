package io.headgate.kernel.pulsar;

import io.headgate.kernel.rows.Envelope;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Comparator;

/**
 * An encoded record on its way to a topic: where its bytes are, which output it is for, and which record it comes from.
 *
 * @param bytes holds the value and, behind it, the key; of other rows too, before and behind
 * @param at where the value begins
 * @param value how long it is; {@link #NONE} where there is none, which differs from one without a byte
 * @param key how long the key is; {@link #NONE} where there is none
 */
record OutputRow(
    byte[] bytes, int at, int value, int key, int output, int source, int partition, long offset, long sequence, int lane,
    long ordinal) {
  static final int NONE = -1;

  private static final Comparator<OutputRow> BY_RECORD = (a, b) -> {
    int by = Integer.compare(a.source, b.source);
    if (by == 0) by = Integer.compare(a.partition, b.partition);
    return by == 0 ? Long.compare(a.offset, b.offset) : by;
  };

  /** What is equal here is the same to a reader, so that it does not matter which of two has which number. */
  private static final Comparator<OutputRow> BY_CONTENT = (a, b) -> {
    int by = Integer.compare(a.output, b.output);
    if (by == 0) by = Boolean.compare(a.hasKey(), b.hasKey());
    if (by == 0 && a.hasKey()) by = a.compareKeys(b);
    return by == 0 ? a.compareValues(b) : by;
  };

  /**
   * The order in which rows are numbered: by where they come from, then by what is written of them. The results of a window
   * come from no single record; those of a key and a window stand in the order in which they were told.
   *
   * <p>The order after a shuffle is not stable from try to try. Another release may finish what this one began: the order must
   * stay, or a {@link io.headgate.kernel.plan.Placement} know of it.
   */
  static final Comparator<OutputRow> ORDER =
      BY_RECORD.thenComparingLong(OutputRow::sequence).thenComparingInt(OutputRow::lane)
          .thenComparingLong(OutputRow::ordinal).thenComparing(BY_CONTENT);

  /** As release 0.7 had it. */
  static final Comparator<OutputRow> FIRST_ORDER = BY_RECORD.thenComparing(BY_CONTENT);

  static OutputRow of(byte[] envelope) {
    boolean valued = Envelope.hasValue(envelope);
    return new OutputRow(envelope, Envelope.start(envelope, valued ? 0 : 1), valued ? Envelope.length(envelope, 0) : NONE,
        Envelope.segments(envelope) > 1 ? Envelope.length(envelope, 1) : NONE,
        Envelope.address(envelope), Envelope.source(envelope), Envelope.partition(envelope), Envelope.offset(envelope),
        Envelope.sequence(envelope), Envelope.lane(envelope), Envelope.ordinal(envelope));
  }

  /** Returns the same row, with its bytes elsewhere. */
  OutputRow copiedTo(byte[] block, int place) {
    System.arraycopy(bytes, at, block, place, size());
    return new OutputRow(block, place, value, key, output, source, partition, offset, sequence, lane, ordinal);
  }

  /** Writes the row for {@link #read}; only the process that wrote it reads it. */
  void write(DataOutputStream out) throws IOException {
    out.writeInt(value);
    out.writeInt(key);
    out.writeInt(output);
    out.writeInt(source);
    out.writeInt(partition);
    out.writeLong(offset);
    out.writeLong(sequence);
    out.writeInt(lane);
    out.writeLong(ordinal);
    out.write(bytes, at, size());
  }

  static OutputRow read(DataInputStream in) throws IOException {
    int value = in.readInt();
    int key = in.readInt();
    int output = in.readInt();
    int source = in.readInt();
    int partition = in.readInt();
    long offset = in.readLong();
    long sequence = in.readLong();
    int lane = in.readInt();
    long ordinal = in.readLong();
    byte[] bytes = new byte[Math.max(0, value) + Math.max(0, key)];
    in.readFully(bytes);
    return new OutputRow(bytes, 0, value, key, output, source, partition, offset, sequence, lane, ordinal);
  }

  boolean hasKey() {
    return key != NONE;
  }

  /** Returns how many bytes the value and the key have. */
  int size() {
    return Math.max(0, value) + Math.max(0, key);
  }

  /** Returns null where there is none. */
  byte[] valueBytes() {
    return value == NONE ? null : Arrays.copyOfRange(bytes, at, at + value);
  }

  byte[] keyBytes() {
    return Arrays.copyOfRange(bytes, keyAt(), keyAt() + key);
  }

  String keyText() {
    return new String(bytes, keyAt(), key, StandardCharsets.UTF_8);
  }

  private int keyAt() {
    return at + Math.max(0, value);
  }

  private int compareKeys(OutputRow other) {
    int mine = keyAt();
    int theirs = other.keyAt();
    return Arrays.compareUnsigned(bytes, mine, mine + key, other.bytes, theirs, theirs + other.key);
  }

  private int compareValues(OutputRow other) {
    if (value == NONE || other.value == NONE) return Boolean.compare(value != NONE, other.value != NONE);
    return Arrays.compareUnsigned(bytes, at, at + value, other.bytes, other.at, other.at + other.value);
  }
}
