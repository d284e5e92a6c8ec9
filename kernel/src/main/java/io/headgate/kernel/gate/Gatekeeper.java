package io.headgate.kernel.gate;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.connector.read.streaming.Offset;

/**
 * Decides, before every batch and for every source of one query, whether to read, to wait or to end.
 *
 * <p>Spark asks each source for its newest position on the query's thread, one after the other, once the batch before has
 * committed. Orders come from other threads.
 */
public final class Gatekeeper {
  private enum Order { OPEN, HOLD, STOP }

  private static final Map<String, Gatekeeper> ALL = new ConcurrentHashMap<>();
  private static final long HELD_MS = 20;

  /** What is known of one source; positions are those Spark handed in, so whatever lies before them is committed. */
  private static final class Source {
    final boolean loadsFirst;
    final boolean waits;
    Offset start;
    Offset loadTarget;
    Offset drainTarget;
    boolean loaded;

    Source(boolean loadsFirst, boolean waits) {
      this.loadsFirst = loadsFirst;
      this.waits = waits;
    }
  }

  private final Map<String, Source> sources = new HashMap<>();
  private volatile Order order = Order.OPEN;
  private volatile boolean untilCaughtUp;
  private volatile long minPauseNanos;
  private volatile long writtenAt;
  private volatile boolean written;
  private volatile Runnable first;

  private Gatekeeper() {}

  /** Returns the keeper of a query's gates; the first to ask makes it. */
  public static Gatekeeper of(String gate) {
    return ALL.computeIfAbsent(gate, g -> new Gatekeeper());
  }

  public static void forget(String gate) {
    ALL.remove(gate);
  }

  public synchronized void open() {
    if (order != Order.STOP) order = Order.OPEN;
  }

  public synchronized void hold() {
    if (order != Order.STOP) order = Order.HOLD;
  }

  /** Ends the query before its next batch; nothing takes that back. */
  public synchronized void stop() { order = Order.STOP; }

  /** Ends the query once every source has been read up to where it ended when this query first looked. */
  public void untilCaughtUp() { untilCaughtUp = true; }

  /** Lets no batch begin sooner than this after the one before was written. */
  public void minPause(long millis) { minPauseNanos = millis * 1_000_000L; }

  /** Takes note that a batch has been written: the pause before the next one begins here. */
  public void batchWritten() {
    writtenAt = System.nanoTime();
    written = true;
  }

  /** Has something done on the query's thread before it first looks for records; what it throws ends the query. */
  public void first(Runnable what) { first = what; }

  /** Returns whether streams wait for tables. */
  public synchronized boolean isLoading() {
    return !tablesLoaded();
  }

  /** @param loadsFirst a table that streams wait for
   *  @param waits a stream */
  synchronized void register(String source, boolean loadsFirst, boolean waits) {
    sources.put(source, new Source(loadsFirst, waits));
  }

  private boolean pauses() {
    return written && System.nanoTime() - writtenAt < minPauseNanos;
  }

  /** Waits while held and for the least pause; throws where the query is to end here. */
  void pass() {
    if (first != null && order != Order.STOP) {
      first.run();
      first = null;
    }
    while (order != Order.OPEN || pauses()) {
      if (order == Order.STOP) throw new StopAtBoundary("stopped between two batches, as ordered");
      try {
        Thread.sleep(HELD_MS);
      } catch (InterruptedException e) {
        // Nobody here asked for an end: whoever did interrupted the query, and is told so.
        Thread.currentThread().interrupt();
        throw new IllegalStateException("interrupted while held", e);
      }
    }
  }

  /** Takes note of where a source stands and where it ends now. */
  synchronized void at(String name, Offset start, Offset newest) {
    Source source = sources.get(name);
    source.start = start;
    if (source.loadTarget != null) source.loaded |= reached(start, source.loadTarget);
    if (untilCaughtUp && source.drainTarget == null) source.drainTarget = newest;
  }

  /** Ends the query if every source was read to where it ended. */
  synchronized void endIfCaughtUp() {
    if (!untilCaughtUp) return;
    for (Source s : sources.values())
      if (s.drainTarget == null || !reached(s.start, s.drainTarget)) return;
    throw new StopAtBoundary("every source was read to its end");
  }

  /** Sets where a table must have been read to before streams are let in. */
  synchronized void loadTo(String name, Offset target) {
    sources.get(name).loadTarget = target;
  }

  /** Returns whether a source may read in the coming batch. */
  synchronized boolean admits(String name) {
    return !sources.get(name).waits || tablesLoaded();
  }

  private boolean tablesLoaded() {
    for (Source s : sources.values()) if (s.loadsFirst && !s.loaded) return false;
    return true;
  }

  private static boolean reached(Offset at, Offset target) {
    if (at == null) return false;
    return at instanceof Reaches r ? r.reaches(target) : at.equals(target);
  }
}
