package io.headgate.kernel.windows;

import java.io.Serializable;

/** Finds the windows that an event belongs to. */
public sealed interface Assigner extends Serializable permits FixedWindows, SessionWindows {
  /**
   * Returns whether no window can take an event, whatever the key holds.
   *
   * @param closed windows that end by this moment of event time take nothing more
   */
  boolean isLate(long time, long closed);

  /** Returns whether it matters in which order events are taken. */
  boolean isOrdered();

  /**
   * Chooses the windows that take an event, and opens those that are not there; none where it is late.
   *
   * @param onTime whether the event is on time, however late it may seem
   * @param now on the clock
   */
  void assign(long time, long closed, boolean onTime, long now, OpenWindows open);
}
