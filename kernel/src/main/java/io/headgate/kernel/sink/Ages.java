package io.headgate.kernel.sink;

import java.io.Serializable;

/**
 * How old records were at a moment, as a histogram: sixteen buckets for each doubling, so that an age is known to 1 in 16.
 *
 * <p>One that is filled belongs to one task and one epoch.
 */
final class Ages implements Serializable {
  /** Ages below this many milliseconds have a bucket each. */
  private static final int EXACT = 16;
  /** Above some centuries all ages are alike. */
  private static final int BUCKETS = EXACT * 40;

  private final long[] counts = new long[BUCKETS];

  /** Takes an age in milliseconds; a record from the future is as good as new. */
  void add(long age) {
    counts[bucket(age)]++;
  }

  void addAll(Ages other) {
    for (int i = 0; i < BUCKETS; i++) counts[i] += other.counts[i];
  }

  long total() {
    long sum = 0;
    for (long count : counts) sum += count;
    return sum;
  }

  /** Returns the age that this share of all is no older than, to the middle of its bucket; there is at least one. */
  long percentile(double share) {
    long left = (long) Math.ceil(share * total());
    int i = 0;
    while ((left -= counts[i]) > 0) i++;
    return middle(i);
  }

  /**
   * Returns how many ages are above the bound before and up to each bound, and then how many are above the last.
   *
   * @param bounds ascending
   * @param more is added to each age
   */
  long[] counts(long[] bounds, long more) {
    var out = new long[bounds.length + 1];
    int place = 0;
    for (int i = 0; i < BUCKETS; i++) {
      if (counts[i] == 0) continue;
      while (place < bounds.length && middle(i) + more > bounds[place]) place++;
      out[place] += counts[i];
    }
    return out;
  }

  long sum() {
    long sum = 0;
    for (int i = 0; i < BUCKETS; i++) sum += counts[i] * middle(i);
    return sum;
  }

  static int bucket(long age) {
    if (age < EXACT) return (int) Math.max(0, age);
    // The place of the highest bit, and the four bits behind it.
    int high = 63 - Long.numberOfLeadingZeros(age);
    return Math.min(BUCKETS - 1, (high - 3) * EXACT + (int) (age >>> (high - 4)) - EXACT);
  }

  private static long middle(int bucket) {
    return bucket < EXACT ? bucket : (floor(bucket) + floor(bucket + 1)) / 2;
  }

  /** Returns the least age of a bucket. */
  private static long floor(int bucket) {
    int high = bucket / EXACT + 3;
    return (long) (EXACT + bucket % EXACT) << (high - 4);
  }
}
