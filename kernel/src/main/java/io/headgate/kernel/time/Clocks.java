package io.headgate.kernel.time;

import io.headgate.kernel.gate.Gatekeeper;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The clocks of one query. They know of each other, since an idle stream's clock goes by the others'.
 *
 * <p>Spark asks each of them on the query's thread, one after the other, before every batch.
 */
public final class Clocks {
  private static final Map<String, Clocks> ALL = new ConcurrentHashMap<>();

  /** One clock: what it was told of its stream, and what it last showed. */
  private static final class Clock {
    final long delay;
    final long idleAfter;
    long shown = GreatestTime.NONE;

    Clock(long delay, long idleAfter) {
      this.delay = delay;
      this.idleAfter = idleAfter;
    }
  }

  private final Gatekeeper keeper;
  private final Map<String, GreatestTime> decoded = new ConcurrentHashMap<>();
  private final Map<String, Clock> clocks = new ConcurrentHashMap<>();

  private String first;
  private boolean nudge;
  /** When time last moved, by itself or by a nudge; and where it stood then. */
  private long movedAt = System.nanoTime();
  private long slowest = GreatestTime.NONE;
  private int nudges;

  private Clocks(Gatekeeper keeper) {
    this.keeper = keeper;
  }

  /** Returns the clocks of a query; the first to ask makes them. */
  public static Clocks of(String run) {
    return ALL.computeIfAbsent(run, r -> new Clocks(Gatekeeper.of(r)));
  }

  public static void forget(String run) {
    ALL.remove(run);
  }

  /** Has a stream's clock follow what is decoded of it. */
  public void follow(String stream, GreatestTime time) {
    decoded.put(stream, time);
  }

  /** @param idleAfter for how long the stream holds the others back while it brings nothing; {@link Pace#NEVER}: for ever */
  void register(String stream, long delay, long idleAfter) {
    clocks.put(stream, new Clock(delay, idleAfter));
  }

  /** Takes note of what a stream's clock shows. */
  void shows(String stream, long max) {
    Clock clock = clocks.get(stream);
    clock.shown = Math.max(clock.shown, max);
  }

  /** Returns whether a clock is to be nudged. What the first of a round is told holds for the rest: all move at once. */
  boolean isNudgeDue(String stream, long every) {
    if (first == null) first = stream;
    if (!first.equals(stream)) return nudge;
    long now = System.nanoTime();
    Collection<Pace.Stream> all = streams();
    if (Pace.isBusy(all, every)) nudges = 0;
    if (Pace.slowest(all) != slowest) movedAt = now;
    slowest = Pace.slowest(all);
    nudge = Pace.isNudgeDue(every, (now - movedAt) / 1_000_000, nudges);
    if (nudge) {
      movedAt = now;
      nudges++;
    }
    return nudge;
  }

  Pace.Stream stream(String name) {
    Clock clock = clocks.get(name);
    GreatestTime seen = decoded.get(name);
    long max = seen == null ? clock.shown : Math.max(clock.shown, seen.value());
    return new Pace.Stream(max, clock.delay, clock.idleAfter, keeper.quietMillis(name));
  }

  Collection<Pace.Stream> streams() {
    List<Pace.Stream> out = new ArrayList<>(clocks.size());
    for (String name : clocks.keySet()) out.add(stream(name));
    return out;
  }
}
