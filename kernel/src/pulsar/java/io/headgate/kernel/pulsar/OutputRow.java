package io.headgate.kernel.pulsar;

import io.headgate.kernel.rows.Envelope;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * An encoded record on its way to a topic: where its bytes are, which output it is for, and which record it comes from.
 *
 * @param bytes holds the value and, behind it, the key; of other rows too, before and behind
 * @param at where the value begins
 * @param key how long the key is; {@link #NONE} where there is none
 */
record OutputRow(byte[] bytes, int at, int value, int key, int output, int source, int partition, long offset)
    implements Comparable<OutputRow> {
  static final int NONE = -1;

  static OutputRow of(byte[] envelope) {
    return new OutputRow(envelope, Envelope.start(envelope, 0), Envelope.length(envelope, 0),
        Envelope.segments(envelope) > 1 ? Envelope.length(envelope, 1) : NONE,
        Envelope.address(envelope), Envelope.source(envelope), Envelope.partition(envelope), Envelope.offset(envelope));
  }

  /** Returns the same row, with its bytes elsewhere. */
  OutputRow copiedTo(byte[] block, int place) {
    System.arraycopy(bytes, at, block, place, size());
    return new OutputRow(block, place, value, key, output, source, partition, offset);
  }

  boolean hasKey() {
    return key != NONE;
  }

  /** Returns how many bytes the value and the key have. */
  int size() {
    return hasKey() ? value + key : value;
  }

  byte[] valueBytes() {
    return Arrays.copyOfRange(bytes, at, at + value);
  }

  byte[] keyBytes() {
    return Arrays.copyOfRange(bytes, at + value, at + value + key);
  }

  String keyText() {
    return new String(bytes, at + value, key, StandardCharsets.UTF_8);
  }

  /**
   * Orders rows as they are numbered: by where they come from, then by what is written of them.
   *
   * <p>The order after a shuffle is not stable from try to try. Rows that are equal here are the same to a reader, so that it
   * does not matter which of them has which number. Another release may finish what this one began: the order must stay.
   */
  @Override public int compareTo(OutputRow other) {
    int by = Integer.compare(source, other.source);
    if (by == 0) by = Integer.compare(partition, other.partition);
    if (by == 0) by = Long.compare(offset, other.offset);
    if (by == 0) by = Integer.compare(output, other.output);
    if (by == 0) by = Boolean.compare(hasKey(), other.hasKey());
    if (by == 0 && hasKey()) by = compareKeys(other);
    return by == 0 ? compareValues(other) : by;
  }

  private int compareKeys(OutputRow other) {
    int mine = at + value;
    int theirs = other.at + other.value;
    return Arrays.compareUnsigned(bytes, mine, mine + key, other.bytes, theirs, theirs + other.key);
  }

  private int compareValues(OutputRow other) {
    return Arrays.compareUnsigned(bytes, at, at + value, other.bytes, other.at, other.at + other.value);
  }
}
