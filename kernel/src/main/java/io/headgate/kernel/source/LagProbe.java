package io.headgate.kernel.source;

import java.util.Map;
import java.util.OptionalLong;
import java.util.function.Supplier;

/**
 * Finds out how old the oldest record is that was not read, on a thread of its own.
 *
 * <p>Nobody waits for it: it looks at most every 2 s, only while something is unread, and what it does not know yet is not
 * told.
 *
 * @param <P> a partition
 * @param <A> a place in it
 */
public final class LagProbe<P, A> implements AutoCloseable {
  /** Looks at a log; serves the probe's thread alone. */
  public interface Look<P, A> extends AutoCloseable {
    /** Returns the times of the records at these places, in epoch milliseconds, as far as they are found. */
    Map<P, Long> times(Map<P, A> wanted);

    @Override void close();
  }

  private static final long EVERY_MS = 2_000;
  private static final long AFTER_FAILURE_MS = 15_000;

  private final String name;
  private final Supplier<Look<P, A>> open;
  /** What is unread, by partition the first place; empty where all is read. */
  private Map<P, A> unread = Map.of();
  private Map<P, Long> times = Map.of();
  private Thread thread;
  private boolean closed;

  /** @param name the thread's */
  public LagProbe(String name, Supplier<Look<P, A>> open) {
    this.name = name;
    this.open = open;
  }

  /** Tells where reading stands, and returns at once the oldest unread record's time, if it is known. */
  public synchronized OptionalLong oldest(Map<P, A> unread) {
    this.unread = unread;
    if (!unread.isEmpty() && thread == null && !closed) {
      thread = new Thread(this::run, name);
      thread.setDaemon(true);
      thread.start();
    }
    return times.entrySet().stream()
        .filter(each -> unread.containsKey(each.getKey())).mapToLong(Map.Entry::getValue).min();
  }

  private void run() {
    Look<P, A> look = null;
    long pause = 0;
    try {
      for (Map<P, A> wanted = await(pause); wanted != null; wanted = await(pause)) {
        try {
          if (look == null) look = open.get();
          publish(look.times(wanted));
          pause = EVERY_MS;
        } catch (RuntimeException e) {
          // Whatever it is, reading itself meets it too, and tells.
          if (look != null) look.close();
          look = null;
          publish(Map.of());
          pause = AFTER_FAILURE_MS;
        }
      }
    } finally {
      if (look != null) look.close();
    }
  }

  /** Waits for the pause to pass and for something to be unread; returns null where the source has ended. */
  private synchronized Map<P, A> await(long pause) {
    long until = System.currentTimeMillis() + pause;
    while (!closed && (unread.isEmpty() || System.currentTimeMillis() < until)) {
      try {
        wait(unread.isEmpty() ? EVERY_MS : Math.max(1, until - System.currentTimeMillis()));
      } catch (InterruptedException e) {
        return null;
      }
    }
    return closed ? null : unread;
  }

  private synchronized void publish(Map<P, Long> found) {
    times = found;
  }

  @Override public synchronized void close() {
    closed = true;
    notifyAll();
  }
}
