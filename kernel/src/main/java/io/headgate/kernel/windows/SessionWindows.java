package io.headgate.kernel.windows;

/**
 * Windows that last from a first event until none has come for a gap, in ms; an event may join several into one.
 *
 * <p>A window that has grown is another window: it gets a final row of its own. It counts as due for an early row by its
 * number of events if it has passed a multiple that the largest of those it was joined from had not.
 */
public record SessionWindows(long gap) implements Assigner {
  @Override public boolean isLate(long time, long closed) {
    // A late event still belongs to a session that has gone on since.
    return false;
  }

  @Override public boolean isOrdered() {
    // An event that is late alone is not where the one that it belongs to came before it.
    return true;
  }

  @Override public void assign(long time, long closed, boolean onTime, long now, OpenWindows open) {
    long end = time + gap;
    OpenWindow into = null;
    long from = 0;
    long until = 0;
    for (int i = 0; i < open.size(); i++) {
      OpenWindow each = open.get(i);
      boolean stands = onTime || each.end > closed;
      if (!stands || each.from > end || time > each.end) continue;
      each.before = each.count;
      if (into == null) {
        into = each;
        from = each.from;
        until = each.end;
      } else {
        into.merge(each);
        open.remove(i--);
      }
    }
    if (into == null) {
      if (end > closed || onTime) open.choose(open.add(time, end, now));
      return;
    }
    into.from = Math.min(into.from, time);
    into.end = Math.max(into.end, end);
    if (into.from != from || into.end != until) into.finished = false;
    open.choose(into);
  }
}
