package io.headgate.kernel.sink;

import io.headgate.kernel.rows.Envelope;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/**
 * What says of a row in a log which record it comes from: {@code lineage/source/partition/offset}, a header or a property.
 *
 * <p>A row that is not the first made of its record has its ordinal behind it: {@code …/offset/ordinal}.
 *
 * <p>One serves one thread.
 */
public final class PositionHeader {
  public static final String NAME = "headgate";
  /** Digits of the longest number, with its sign. */
  private static final int LONGEST = 20;

  private final byte[][] prefixes;
  private final byte[] digits = new byte[3 * LONGEST + 2];

  /** @param sources uids by number */
  public PositionHeader(String lineage, List<String> sources) {
    prefixes = sources.stream()
        .map(s -> (lineage + "/" + s + "/").getBytes(StandardCharsets.UTF_8)).toArray(byte[][]::new);
  }

  /** Returns the header's value, or null for a row that no single record stands behind. */
  public byte[] of(byte[] envelope) {
    return of(Envelope.source(envelope), Envelope.partition(envelope), Envelope.offset(envelope),
        Envelope.ordinal(envelope));
  }

  /** Likewise, of a row that comes from a record of a source. */
  public byte[] of(int source, int partition, long offset, long ordinal) {
    if (source == Envelope.NO_SOURCE) return null;
    byte[] prefix = prefixes[source];
    int at = digits.length;
    if (ordinal != 0) {
      at = put(ordinal, at);
      digits[--at] = '/';
    }
    at = put(offset, at);
    digits[--at] = '/';
    at = put(partition, at);
    byte[] out = Arrays.copyOf(prefix, prefix.length + digits.length - at);
    System.arraycopy(digits, at, out, prefix.length, digits.length - at);
    return out;
  }

  /** Writes a number that ends before a place; returns where it begins. */
  private int put(long number, int end) {
    int at = end;
    // The least number has no positive one, so digits are taken from the negative.
    long left = number < 0 ? number : -number;
    do {
      digits[--at] = (byte) ('0' - left % 10);
      left /= 10;
    } while (left != 0);
    if (number < 0) digits[--at] = '-';
    return at;
  }
}
