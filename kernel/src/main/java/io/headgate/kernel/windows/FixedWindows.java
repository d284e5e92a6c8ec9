package io.headgate.kernel.windows;

/**
 * Windows of one size, in ms, that begin every so often, counted from the epoch; side by side where both are the same.
 *
 * <p>An event that is too late for some of its windows counts in the others.
 */
public record FixedWindows(long size, long every) implements Assigner {
  @Override public boolean isLate(long time, long closed) {
    return newest(time) + size <= closed;
  }

  @Override public boolean isOrdered() {
    return false;
  }

  @Override public void assign(long time, long closed, boolean onTime, long now, OpenWindows open) {
    for (long from = newest(time); from + size > time; from -= every) {
      // Those that follow end still earlier.
      if (from + size <= closed && !onTime) return;
      OpenWindow window = open.at(from, from + size, now);
      window.before = window.count;
      open.choose(window);
    }
  }

  /** Returns when the newest window of a moment begins. */
  private long newest(long time) {
    return time - Math.floorMod(time, every);
  }
}
