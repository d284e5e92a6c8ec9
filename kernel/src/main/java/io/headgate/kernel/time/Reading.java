package io.headgate.kernel.time;

/**
 * What a stream's clock shows.
 *
 * @param max the event time the stream is known to have reached, in epoch milliseconds
 * @param nudged by how many milliseconds the clock is ahead of that, so that timers are looked at while nothing happens
 */
public record Reading(long max, int nudged) {
  /** How far ahead a clock may be; as much is added to the stream's out-of-orderness, so that no event is late by it. */
  public static final int MOST_NUDGED = 1000;

  public boolean isKnown() {
    return max != GreatestTimes.NONE;
  }

  public long time() {
    return max + nudged;
  }
}
