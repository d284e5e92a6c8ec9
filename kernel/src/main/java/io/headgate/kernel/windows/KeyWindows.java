package io.headgate.kernel.windows;

import io.headgate.kernel.plan.Route;
import io.headgate.kernel.rows.Bucket;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.Header;
import io.headgate.kernel.rows.SegmentedRow;
import org.apache.spark.sql.streaming.TimerValues;

/**
 * The windows of one key at a time: takes events, closes what is over, and says when it wants to be woken.
 *
 * <p>A window that existed when the watermark passed its end is closed when its key is woken, after the rows of the batch. One
 * that begins behind the watermark is closed at the end of the call that began it. One object serves the keys of a task in
 * turn.
 */
final class KeyWindows {
  private final WindowSpec spec;
  private final OpenWindows open;
  private final SegmentedRow row;
  private final Header header = new Header();
  private Updates updates;

  // Of the present call.
  private Route.Out out;
  private long watermark;
  /** Windows that end by then take nothing more. */
  private long closed;
  /** The clock as of the batch: the same in a replay. In real-time mode, as of now. */
  private long now;

  // Of the present key.
  private byte[] key;
  private boolean changed;

  KeyWindows(WindowSpec spec) {
    this.spec = spec;
    open = new OpenWindows(spec.name(), spec.aggregates());
    row = new SegmentedRow(spec.input());
  }

  /** Says what time it is, and where rows go, in the call that begins. */
  void enter(TimerValues timers, Route.Out out) {
    this.out = out;
    watermark = timers.getCurrentWatermarkInMs();
    closed = watermark - spec.lateness();
    now = timers.getCurrentProcessingTimeInMs();
  }

  /** @param held what {@link #state} gave; null for a key that has none */
  void begin(byte[] key, byte[] held) {
    this.key = key;
    changed = false;
    open.read(held);
  }

  void take(byte[] event) {
    long time = Envelope.eventTime(event);
    boolean onTime = Envelope.isOnTime(event);
    row.read(event);
    open.chooseNone();
    if (onTime || !spec.windows().isLate(time, closed)) spec.windows().assign(time, closed, onTime, now, open);
    if (open.choice() == 0) {
      header.read(event);
      spec.late().send(row, header, Bucket.of(key), out);
      return;
    }
    changed = true;
    for (int i = 0; i < open.choice(); i++) {
      OpenWindow window = open.chosen(i);
      window.add(row, event, onTime);
      boolean growing = !window.finished && window.end > watermark;
      if (growing && spec.early().isDue(window.before, window.count)) tell(window, Updates.Kind.PARTIAL, false);
    }
  }

  /** Tells what the key's events made due; returns whether any was taken, so that its state is another. */
  boolean conclude() {
    if (!changed) return false;
    boolean waking = open.due <= watermark;
    for (int i = 0; i < open.size(); i++) {
      OpenWindow window = open.get(i);
      if (!window.touched) continue;
      if (window.finished) {
        tell(window, Updates.Kind.CORRECTION, false);
      } else if (window.end <= watermark) {
        // Where the key is about to be woken, this window is closed then, and all its events count.
        if (!waking) close(window, window.punctual);
      } else if (window.fresh) {
        if (spec.early().isDueByClock(window.told, now)) tell(window, Updates.Kind.PARTIAL, false);
        else if (window.due == OpenWindow.NEVER) window.due = spec.early().next(watermark);
      }
    }
    if (!waking) {
      forgetClosed();
      open.due = next();
    }
    return true;
  }

  /** Does what is due. */
  void wake() {
    for (int i = 0; i < open.size(); i++) wake(open.get(i));
    forgetClosed();
    open.due = next();
  }

  private void wake(OpenWindow window) {
    if (window.finished) return;
    if (window.end <= watermark) {
      // A window that ended before the key was due was begun behind the watermark.
      close(window, window.end >= open.due);
    } else if (window.fresh && (window.due <= watermark || spec.early().isDueByClock(window.told, now))) {
      tell(window, Updates.Kind.PARTIAL, true);
    }
  }

  /** Finds anew when the key is due: another query had its own time. */
  void takeOver() {
    open.due = next();
  }

  /** Returns when the key is to be woken; {@link OpenWindow#NEVER} for never. */
  long due() {
    return open.due;
  }

  /** Returns what to keep; null for nothing. */
  byte[] state() {
    return open.size() == 0 ? null : open.write();
  }

  private void close(OpenWindow window, boolean onTime) {
    tell(window, Updates.Kind.FINAL, onTime);
    window.finished = true;
  }

  private void tell(OpenWindow window, Updates.Kind kind, boolean onTime) {
    if (updates == null) updates = new Updates(spec);
    updates.send(window, kind, onTime, now, key, out);
    window.fresh = false;
    window.due = OpenWindow.NEVER;
    window.told = now;
  }

  private void forgetClosed() {
    for (int i = open.size() - 1; i >= 0; i--) {
      OpenWindow window = open.get(i);
      if (window.finished && window.end <= closed) open.remove(i);
    }
  }

  /** Returns the earliest moment at which something is due; above the watermark. */
  private long next() {
    long earliest = OpenWindow.NEVER;
    for (int i = 0; i < open.size(); i++) {
      OpenWindow window = open.get(i);
      earliest = Math.min(earliest, window.finished ? window.end + spec.lateness() : window.end);
      if (!window.fresh || window.finished) continue;
      earliest = Math.min(earliest, window.due);
      // How far the clock has come shows only when the watermark moves.
      if (spec.early().processingTime() > 0) return watermark + 1;
    }
    return Math.max(earliest, watermark + 1);
  }
}
