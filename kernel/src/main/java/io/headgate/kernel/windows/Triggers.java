package io.headgate.kernel.windows;

import java.io.Serializable;

/**
 * When a window tells what it has found before it is complete.
 *
 * @param events a row with each of these numbers of events, and their multiples
 * @param eventTime a row whenever the watermark has passed a multiple of one of these, in ms
 * @param processingTime a row after so many ms on the clock; 0 for never
 */
public record Triggers(long[] events, long[] eventTime, long processingTime) implements Serializable {
  boolean hasEvents() {
    return events.length > 0;
  }

  /** Returns whether a row is due with a window's newest event, which brought it from one number of events to another. */
  boolean isDue(long before, long after) {
    for (long n : events) if (after / n > before / n) return true;
    return false;
  }

  boolean isDueByClock(long since, long now) {
    return processingTime > 0 && now - since >= processingTime;
  }

  /** Returns the next moment of event time at which rows are due; OpenWindow.NEVER for none. */
  long next(long watermark) {
    long next = OpenWindow.NEVER;
    for (long every : eventTime) next = Math.min(next, (Math.floorDiv(watermark, every) + 1) * every);
    return next;
  }
}
