package io.headgate.kernel.pulsar;

import io.headgate.kernel.rows.Envelope;
import java.util.Arrays;
import java.util.Comparator;

/**
 * The order in which rows are numbered: by where they come from, then by what is written of them.
 *
 * <p>The order after a shuffle is not stable from try to try. Rows that are equal here are the same to a reader, so that it
 * does not matter which of them has which number.
 */
final class RowOrder implements Comparator<byte[]> {
  @Override public int compare(byte[] a, byte[] b) {
    int by = Integer.compare(Envelope.source(a), Envelope.source(b));
    if (by == 0) by = Integer.compare(Envelope.partition(a), Envelope.partition(b));
    if (by == 0) by = Long.compare(Envelope.offset(a), Envelope.offset(b));
    if (by == 0) by = Integer.compare(Envelope.address(a), Envelope.address(b));
    if (by == 0) by = Integer.compare(Envelope.segments(a), Envelope.segments(b));
    for (int i = Envelope.segments(a) - 1; by == 0 && i >= 0; i--) by = compare(a, b, i);
    return by;
  }

  private static int compare(byte[] a, byte[] b, int segment) {
    int at = Envelope.start(a, segment);
    int bt = Envelope.start(b, segment);
    return Arrays.compareUnsigned(
        a, at, at + Envelope.length(a, segment), b, bt, bt + Envelope.length(b, segment));
  }
}
