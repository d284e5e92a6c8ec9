package io.headgate.kernel.time;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.headgate.kernel.gate.Gatekeeper;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The clocks of one query, and its watermark, which is that of the slowest. They know of each other, since an idle stream's
 * clock goes by the others'.
 *
 * <p>Spark asks each of them on the query's thread, one after the other, before every batch; the sink tells when a batch is
 * written, on the same thread.
 */
public final class Clocks {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Map<String, Clocks> ALL = new ConcurrentHashMap<>();

  /** One clock: what it was told of its stream, and what it last showed. */
  private static final class Clock {
    final long delay;
    final long idleAfter;
    final PartitionTimes partitions = new PartitionTimes();
    Reading shown = new Reading(GreatestTimes.NONE, 0);
    boolean begun;

    Clock(long delay, long idleAfter) {
      this.delay = delay;
      this.idleAfter = idleAfter;
    }
  }

  private final Gatekeeper keeper;
  private final Map<String, GreatestTimes> decoded = new ConcurrentHashMap<>();
  private final Map<String, Clock> clocks = new ConcurrentHashMap<>();

  private String first;
  private boolean nudge;
  /** When time last moved, by itself or by a nudge; and where it stood then. */
  private long movedAt = System.nanoTime();
  private long slowest = GreatestTimes.NONE;
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

  /** Takes note that a batch is written: Spark logs its commit with the watermark that what it brought allows. */
  public static void batchWritten(String run) {
    Clocks clocks = ALL.get(run);
    if (clocks == null || clocks.clocks.isEmpty()) return;
    long now = System.nanoTime();
    clocks.clocks.forEach((name, clock) -> {
      GreatestTimes seen = clocks.decoded.get(name);
      if (seen != null) clock.partitions.decoded(seen.take(), now);
    });
    clocks.raiseWatermark();
  }

  /** Has a stream's clock follow what is decoded of it. */
  public void follow(String stream, GreatestTimes times) {
    decoded.put(stream, times);
  }

  /** @param idleAfter for how long the stream holds the others back while it brings nothing; {@link Pace#NEVER}: for ever */
  void register(String stream, long delay, long idleAfter) {
    clocks.put(stream, new Clock(delay, idleAfter));
  }

  /** Sets what a stream's clock shows when the query starts; later calls do nothing. */
  void begin(String stream, Reading reading, Map<String, Long> partitions) {
    Clock clock = clocks.get(stream);
    if (clock.begun) return;
    clock.begun = true;
    clock.shown = reading;
    clock.partitions.begin(partitions);
  }

  /** Takes in what the last look at a stream found. */
  void look(String stream) {
    clocks.get(stream).partitions.looked(keeper.lastLook(stream));
  }

  /** Takes note of what a stream's clock shows. */
  void shows(String stream, Reading reading) {
    clocks.get(stream).shown = reading;
  }

  /** Tells Spark how far the slowest stream has come. */
  void raiseWatermark() {
    long watermark = Long.MAX_VALUE;
    for (Clock clock : clocks.values()) {
      // A partition may have brought what its clock does not show yet; a clock may be ahead of what was brought.
      long time = Math.max(clock.shown.max(), stream(clock, 0).max());
      if (time == GreatestTimes.NONE) return;
      watermark = Math.min(watermark, Math.max(clock.shown.time(), time) - clock.delay);
    }
    SparkWatermark.raise(watermark);
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
    return stream(clocks.get(name), keeper.quietMillis(name));
  }

  private static Pace.Stream stream(Clock clock, long quiet) {
    return new Pace.Stream(clock.shown.max(), clock.delay, clock.idleAfter, quiet, clock.partitions.partitions());
  }

  Collection<Pace.Stream> streams() {
    List<Pace.Stream> out = new ArrayList<>(clocks.size());
    for (String name : clocks.keySet()) out.add(stream(name));
    return out;
  }

  /** Returns how far a stream has come, for those who watch: JSON, whose times are null where there are none. */
  String told(String name) {
    Clock clock = clocks.get(name);
    Pace.Stream stream = stream(name);
    ObjectNode out = JSON.createObjectNode().put("stream", name).put("slowest", stream.slowestPartition());
    long max = Math.max(clock.shown.max(), stream.max());
    out.put("watermark", max == GreatestTimes.NONE ? null : (Long) (max - clock.delay));
    ObjectNode partitions = out.putObject("partitions");
    stream.partitions().forEach((partition, each) -> partitions.putObject(partition)
        .put("time", each.max() == GreatestTimes.NONE ? null : (Long) each.max())
        .put("idle", each.isIdle(clock.idleAfter)));
    return out.toString();
  }

  /** Returns the greatest event time of each of a stream's partitions that has brought an event. */
  SortedMap<String, Long> times(String stream) {
    return clocks.get(stream).partitions.times();
  }
}
