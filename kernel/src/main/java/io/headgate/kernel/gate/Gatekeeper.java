package io.headgate.kernel.gate;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.UnaryOperator;
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
    /** How often in a row it was found read to where it is to end. */
    int reached;
    boolean loaded;
    /** When it was last seen to have brought something, or to have something left; and when it was last looked at. */
    long broughtAt;
    long seenAt;
    /** How far the coming batch reads each partition; null before the first look. */
    Map<String, Partitioned.Progress> partitions;

    Source(boolean loadsFirst, boolean waits) {
      this.loadsFirst = loadsFirst;
      this.waits = waits;
    }
  }

  /** What is known of a timed stream's clock. */
  private static final class Clock {
    boolean isSet;
    int quiet;

    Clock(boolean isSet) {
      this.isSet = isSet;
    }
  }

  private final Map<String, Source> sources = new HashMap<>();
  private final Map<String, Clock> clocks = new HashMap<>();
  private volatile Order order = Order.OPEN;
  private volatile boolean untilCaughtUp;
  private volatile boolean draining;
  private volatile boolean timeHasEnded;
  private volatile long minPauseNanos;
  private volatile long writtenAt;
  private volatile boolean written;
  private volatile Runnable first;
  private volatile Runnable between = () -> {};
  private volatile Runnable last = () -> {};

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

  /** Does the same, and ends event time before the query: nothing is to follow, so that every window is over. */
  public void drain() {
    draining = true;
    untilCaughtUp = true;
  }

  /** Does the same where the query that this one continues has ended event time: whatever came since would be late. */
  public void finishDrain() {
    timeHasEnded = true;
    drain();
  }

  public boolean isDraining() { return draining; }

  /** Lets no batch begin sooner than this after the one before was written. */
  public void minPause(long millis) { minPauseNanos = millis * 1_000_000L; }

  /** Takes note that a batch has been written: the pause before the next one begins here. */
  public void batchWritten() {
    writtenAt = System.nanoTime();
    written = true;
  }

  /** Has something done on the query's thread before it first looks for records; what it throws ends the query. */
  public void first(Runnable what) { first = what; }

  /**
   * Has something done on the query's thread between two batches, when every batch before has committed; what it throws ends the
   * query.
   *
   * @param each before the gate lets a batch begin, several times where there are several sources
   * @param last before the query ends as it was told to
   */
  public void between(Runnable each, Runnable last) {
    between = each;
    this.last = last;
  }

  /** Returns whether streams wait for tables. */
  public synchronized boolean isLoading() {
    return !tablesLoaded();
  }

  /** @param loadsFirst a table that streams wait for
   *  @param waits a stream */
  synchronized void register(String source, boolean loadsFirst, boolean waits) {
    sources.put(source, new Source(loadsFirst, waits));
  }

  /**
   * Takes note of the clock of a timed stream; it counts as a source of its own.
   *
   * @param isSet whether it begins with no time; one that begins with a time logs it before streams are let in
   */
  public synchronized void registerClock(String stream, boolean isSet) {
    clocks.put(stream, new Clock(isSet));
  }

  private boolean pauses() {
    return written && System.nanoTime() - writtenAt < minPauseNanos;
  }

  /** Waits while held and for the least pause; throws where the query is to end here. */
  public void pass() {
    if (first != null && order != Order.STOP) {
      first.run();
      first = null;
    }
    boolean begun = written;
    if (begun) between.run();
    while (order != Order.OPEN || pauses()) {
      if (order == Order.STOP) throw ended("stopped between two batches, as ordered");
      try {
        Thread.sleep(HELD_MS);
      } catch (InterruptedException e) {
        // Nobody here asked for an end: whoever did interrupted the query, and is told so.
        Thread.currentThread().interrupt();
        throw new IllegalStateException("interrupted while held", e);
      }
    }
    // Not before the gate was open once: until then the query may never begin.
    if (!begun) between.run();
  }

  /** Returns what ends the query, once all is done that is to be done before. */
  private StopAtBoundary ended(String why) {
    // A query that was told to end before it began has prepared nothing.
    if (first == null) last.run();
    return new StopAtBoundary(why);
  }

  /**
   * Takes note of where a source stands and where it ends now.
   *
   * @param left what of a target can still be reached: a topic may be gone since it was set
   */
  synchronized void at(String name, Offset start, Offset newest, UnaryOperator<Offset> left) {
    Source source = sources.get(name);
    source.seenAt = System.nanoTime();
    if (source.start == null || !start.equals(source.start) || !reached(start, newest)) source.broughtAt = source.seenAt;
    source.start = start;
    if (source.loadTarget != null && !source.loaded) source.loaded = reached(start, left.apply(source.loadTarget));
    if (untilCaughtUp && source.drainTarget == null) source.drainTarget = timeHasEnded ? start : newest;
    source.reached = untilCaughtUp && reached(start, left.apply(source.drainTarget)) ? source.reached + 1 : 0;
  }

  /** Returns for how long a source has been read to its end and brought nothing, as far as it was looked at. */
  public synchronized long quietMillis(String name) {
    Source source = sources.get(name);
    return source == null ? 0 : (source.seenAt - source.broughtAt) / 1_000_000;
  }

  /** Takes note of how far the coming batch reads each partition of a source. */
  synchronized void reads(String name, Map<String, Partitioned.Progress> partitions) {
    sources.get(name).partitions = partitions;
  }

  /**
   * What the last look at a source found.
   *
   * @param nanos when that was
   * @param partitions how far the batch that was planned then reads each of them
   */
  public record Look(long nanos, Map<String, Partitioned.Progress> partitions) {}

  /** Returns what the last look at a source found; null before the first. */
  public synchronized Look lastLook(String name) {
    Source source = sources.get(name);
    return source == null || source.partitions == null ? null : new Look(source.seenAt, source.partitions);
  }

  /** Takes note that a batch with the time that a clock began with was logged. */
  public synchronized void clockIsSet(String stream) {
    clocks.get(stream).isSet = true;
  }

  /** Returns whether every clock that began with a time has logged it. */
  public synchronized boolean clocksAreSet() {
    return clocks.values().stream().allMatch(c -> c.isSet);
  }

  /** Takes note of whether a clock stands where it is to stand when the query ends. */
  public synchronized void clockAt(String stream, boolean quiet) {
    Clock clock = clocks.get(stream);
    clock.quiet = quiet ? clock.quiet + 1 : 0;
  }

  /** Returns whether event time is to end: all is read that was there when the query was told to drain. */
  public synchronized boolean ends() {
    return draining && sources.values().stream().allMatch(s -> s.reached > 0);
  }

  /** Ends the query if every source was read to where it ended, and event time has done what it brought about. */
  public void endIfCaughtUp() {
    if (isCaughtUp()) throw ended("every source was read to its end");
  }

  private synchronized boolean isCaughtUp() {
    if (!untilCaughtUp) return false;
    // Where time moved last, another batch follows, with nothing to read, in which windows end: so one more look.
    int looks = clocks.isEmpty() ? 1 : 2;
    for (Source s : sources.values()) if (s.reached < looks) return false;
    for (Clock c : clocks.values()) if (c.quiet < looks) return false;
    return true;
  }

  /** Sets where a table must have been read to before streams are let in. */
  synchronized void loadTo(String name, Offset target) {
    sources.get(name).loadTarget = target;
  }

  /** Returns whether a source may read in the coming batch. */
  synchronized boolean admits(String name) {
    Source source = sources.get(name);
    // What comes behind a drain stays where it is: by the end of time, which this batch may have, it would be late.
    if (draining && !clocks.isEmpty() && source.reached > 0) return false;
    return !source.waits || (tablesLoaded() && clocksAreSet());
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
