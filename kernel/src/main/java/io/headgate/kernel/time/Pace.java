package io.headgate.kernel.time;

import java.util.Collection;
import java.util.Map;
import java.util.SortedMap;

/** Decides how far a stream's clock goes before a batch. All it looks at is handed in; times and spans are in milliseconds. */
public final class Pace {
  /** Event time at the end of time: every window is over by then. */
  public static final long END = 253_402_300_799_999L;

  /** The span of a stream that never counts as idle, and of a flow that is never nudged. */
  public static final long NEVER = -1;

  /** What came in is told by the first nudge; the second is for what came in during it. */
  private static final int IN_A_ROW = 2;

  private Pace() {}

  /**
   * One partition of a stream, as it is known before a batch.
   *
   * @param max the greatest event time it has brought
   * @param empty whether it holds no record
   * @param quiet for how long it has had nothing to read and brought no event
   */
  public record Partition(long max, boolean empty, long quiet) {
    /** What holds no record and never brought an event cannot bring an old one that is there already. */
    boolean isIdle(long idleAfter) {
      return (empty && max == GreatestTimes.NONE) || (idleAfter != NEVER && quiet >= idleAfter);
    }
  }

  /**
   * One stream, as it is known before a batch.
   *
   * @param shown the event time its clock shows
   * @param delay by how much the watermark trails that
   * @param idleAfter for how long a stream that brings nothing holds the others back; NEVER: for ever
   * @param quiet for how long it has been read to its end and brought nothing
   * @param partitions by name; none before they were looked at
   */
  public record Stream(long shown, long delay, long idleAfter, long quiet, SortedMap<String, Partition> partitions) {
    boolean isIdle() {
      return idleAfter != NEVER && quiet >= idleAfter;
    }

    /** Returns the name of the slowest partition that is not idle; null where there is none. */
    public String slowestPartition() {
      String slowest = null;
      for (Map.Entry<String, Partition> each : partitions.entrySet()) {
        if (each.getValue().isIdle(idleAfter)) continue;
        if (slowest == null || each.getValue().max < partitions.get(slowest).max) slowest = each.getKey();
      }
      return slowest;
    }

    /**
     * Returns the event time that the stream has reached: that of its slowest partition, leaving out idle ones. Where all are
     * idle nothing is left to wait for, and it is that of the fastest.
     */
    public long max() {
      String slowest = slowestPartition();
      if (slowest != null) return Math.max(shown, partitions.get(slowest).max);
      long fastest = shown;
      for (Partition each : partitions.values()) fastest = Math.max(fastest, each.max);
      return fastest;
    }
  }

  /**
   * Returns what a stream's clock shows next; the same as before where nothing moves it.
   *
   * @param now what it shows
   * @param own the stream
   * @param all every timed stream of the flow, this one too
   * @param ends whether all that is there has been read and nothing is to follow
   * @param nudge whether time has stood still for so long that timers have to be looked at
   */
  public static Reading next(Reading now, Stream own, Collection<Stream> all, boolean ends, boolean nudge) {
    long max = Math.max(now.max(), own.max());
    if (ends) max = Math.max(max, END + own.delay());
    else if (own.isIdle()) max = Math.max(max, abreast(own, all));
    // The clock does not go back behind where it was nudged to.
    if (max > now.max()) return new Reading(max, now.isKnown() ? (int) Math.max(0, now.time() - max) : 0);
    // Behind the end of time there is no date.
    if (nudge && now.isKnown() && max < END && now.nudged() < Reading.MOST_NUDGED) return new Reading(max, now.nudged() + 1);
    return now;
  }

  /**
   * Returns how far an idle stream may go: as far as the slowest of those that are not. Where all are idle nothing is left to
   * wait for, and it is as far as the fastest.
   */
  private static long abreast(Stream own, Collection<Stream> all) {
    long slowest = Long.MAX_VALUE;
    long fastest = GreatestTimes.NONE;
    for (Stream each : all) {
      long max = each.max();
      if (each.isIdle()) {
        if (max != GreatestTimes.NONE) fastest = Math.max(fastest, max - each.delay());
        continue;
      }
      // What has brought nothing yet, and is not idle, may bring anything.
      if (max == GreatestTimes.NONE) return GreatestTimes.NONE;
      slowest = Math.min(slowest, max - each.delay());
    }
    long aim = slowest == Long.MAX_VALUE ? fastest : slowest;
    return aim == GreatestTimes.NONE ? GreatestTimes.NONE : aim + own.delay();
  }

  /** Returns whether a stream has brought something within a span. */
  static boolean isBusy(Collection<Stream> all, long span) {
    for (Stream each : all) if (each.quiet() < span) return true;
    return false;
  }

  /** Returns how far the slowest stream has come; {@link GreatestTimes#NONE} where one has brought nothing. */
  public static long slowest(Collection<Stream> all) {
    long slowest = Long.MAX_VALUE;
    for (Stream each : all) {
      long max = each.max();
      slowest = Math.min(slowest, max == GreatestTimes.NONE ? GreatestTimes.NONE : max - each.delay());
    }
    return slowest;
  }

  /**
   * Returns whether a flow's timers have to be looked at although time does not move.
   *
   * @param every how often results are due by the wall clock; NEVER: not by the wall clock
   * @param stood for how long time has not moved
   * @param nudges how often it was nudged since anything came in
   */
  public static boolean isNudgeDue(long every, long stood, int nudges) {
    return every != NEVER && stood >= every && nudges < IN_A_ROW;
  }
}
