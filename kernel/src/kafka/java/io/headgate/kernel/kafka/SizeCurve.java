package io.headgate.kernel.kafka;

import java.util.Arrays;

/**
 * How many bytes the records of one partition have, from offset to offset, as far as they were measured; serves one thread.
 *
 * <p>It keeps a point every so many bytes. Between two points lie fewer than twice as many, or a single record.
 */
public final class SizeCurve {
  private final long grain;
  private long[] offsets = new long[64];
  /** How many bytes lie before the offset of the same place. */
  private long[] sums = new long[64];
  private int points;
  private long reached;
  private long sum;

  /**
   * @param from the offset at which measuring begins
   * @param grain how many bytes there are between two points
   */
  public SizeCurve(long from, long grain) {
    this.grain = Math.max(1, grain);
    reached = from;
    point();
  }

  /** Takes note of the next record. */
  public void add(long offset, long size) {
    // A large record stands alone between two points, so that it can be a batch of its own.
    if (size >= grain && sum > sums[points - 1]) {
      reached = offset;
      point();
    }
    reached = offset + 1;
    sum += Math.max(1, size);
    if (sum - sums[points - 1] >= grain) point();
  }

  /** Takes note that no further record comes before an offset. */
  public void reach(long offset) {
    reached = Math.max(reached, offset);
  }

  /** Returns the offset up to which records were measured. */
  public long reached() {
    return reached;
  }

  /** Returns whether the measured range has an offset in it, or ends there. */
  boolean covers(long offset) {
    return offsets[0] <= offset && offset <= reached;
  }

  /** Drops what lies before an offset. */
  void forget(long before) {
    int keep = atOrBefore(before);
    if (keep <= 0) return;
    points -= keep;
    System.arraycopy(offsets, keep, offsets, 0, points);
    System.arraycopy(sums, keep, sums, 0, points);
  }

  /** Returns how many bytes a measured range has: never fewer than there are, and at most two grains more. */
  public long bytes(long from, long to) {
    if (to <= from) return 0;
    int after = atOrBefore(to);
    long end = offsets[after] == to ? sums[after] : after + 1 < points ? sums[after + 1] : sum;
    return end - sums[atOrBefore(from)];
  }

  /** Returns the end of the smallest range that can be told from its neighbours; {@code from} where nothing was measured. */
  public long step(long from, long to) {
    int next = atOrBefore(from) + 1;
    return Math.min(to, next < points ? offsets[next] : reached);
  }

  /** Returns the end of the largest measured range that has no more than so many bytes. */
  public long end(long from, long to, long limit) {
    long last = Math.min(to, reached);
    if (bytes(from, last) <= limit) return last;
    long most = sums[atOrBefore(from)] + limit;
    int low = 0;
    int high = points - 1;
    while (low < high) {
      int middle = (low + high + 1) >>> 1;
      if (sums[middle] <= most) low = middle;
      else high = middle - 1;
    }
    return Math.max(from, Math.min(last, offsets[low]));
  }

  /** Returns the place of the last point at an offset or before it; the first one's where there is none. */
  private int atOrBefore(long offset) {
    int found = Arrays.binarySearch(offsets, 0, points, offset);
    return found >= 0 ? found : Math.max(0, -found - 2);
  }

  private void point() {
    if (points > 0 && offsets[points - 1] == reached) {
      sums[points - 1] = sum;
      return;
    }
    if (points == offsets.length) {
      offsets = Arrays.copyOf(offsets, points * 2);
      sums = Arrays.copyOf(sums, points * 2);
    }
    offsets[points] = reached;
    sums[points++] = sum;
  }
}
