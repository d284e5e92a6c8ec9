package io.headgate.kernel.pulsar;

/**
 * The numbers of a task's rows, by which a broker knows the ones it has: {@code epoch << 32 | shape << 26 | rank}.
 *
 * <p>A broker keeps the highest number of each producer and topic, and takes what is not above it for a double (Pulsar 4.0.8,
 * {@code MessageDeduplication}). So numbers must grow, and a row must have the same one in every try.
 */
final class SequenceId {
  /** What a broker says that has nothing of a producer. */
  static final long NONE = -1;

  private static final int RANK_BITS = 26;
  private static final int SHAPE_BITS = 6;

  private SequenceId() {}

  /** @param rank which of the task's rows of the epoch it is, in an order that every try has */
  static long of(long epoch, int shape, int rank) {
    if (rank >= 1 << RANK_BITS)
      throw new IllegalStateException("batch " + epoch + " has more than " + (1 << RANK_BITS)
          + " rows for one task: run it with a smaller --max-batch");
    return epoch << (SHAPE_BITS + RANK_BITS) | (long) shape << RANK_BITS | rank;
  }

  static long epoch(long id) {
    return id >> (SHAPE_BITS + RANK_BITS);
  }

  static int shape(long id) {
    return (int) (id >> RANK_BITS) & ((1 << SHAPE_BITS) - 1);
  }

  /**
   * Returns a short sum of how rows are shared out: tries that share them out otherwise must not finish each other's epochs.
   *
   * <p>The factor is odd, so that a change of either number alone is always seen, unless it is one by a multiple of 64.
   */
  static int shape(int tasks, int partitions) {
    return (tasks * 37 + partitions) & ((1 << SHAPE_BITS) - 1);
  }
}
