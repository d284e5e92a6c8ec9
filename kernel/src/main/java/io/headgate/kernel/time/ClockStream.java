package io.headgate.kernel.time;

import io.headgate.kernel.gate.Gatekeeper;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Reads a stream's clock. It has no rows: what it shows is its offset, and each of its moves has Spark run a batch.
 */
final class ClockStream implements MicroBatchStream, SupportsAdmissionControl, ReportsSourceMetrics {
  private final String name;
  private final Gatekeeper keeper;
  private final Clocks clocks;
  private final long start;
  private final SortedMap<String, Long> startPartitions;
  private final long nudgeEvery;
  /** Whether a batch had the time since this process started: its report shows it. */
  private boolean told;
  private ClockOffset newest = ClockOffset.START;

  ClockStream(CaseInsensitiveStringMap options) {
    name = options.get("clock.stream");
    keeper = Gatekeeper.of(options.get("gate"));
    clocks = Clocks.of(options.get("gate"));
    start = options.getLong("clock.start", GreatestTimes.NONE);
    startPartitions = ClockOffset.parseTimes(options.getOrDefault("clock.partitions", "{}"));
    nudgeEvery = options.getLong("clock.nudge", Pace.NEVER);
    clocks.register(name, options.getLong("clock.delay", 0), options.getLong("clock.idle", Pace.NEVER));
    // Where it begins with a time, the first batch only takes over state, and streams wait: their events may be late by it.
    keeper.registerClock(name, start == GreatestTimes.NONE);
  }

  @Override public Offset latestOffset(Offset from, ReadLimit limit) {
    keeper.pass();
    ClockOffset at = (ClockOffset) from;
    clocks.begin(name, new Reading(Math.max(at.max, start), at.nudged), at.n == 0 ? startPartitions : at.partitions);
    clocks.look(name);
    if (at.n > 0) keeper.clockIsSet(name);
    boolean nudge = clocks.isNudgeDue(name, nudgeEvery);
    Reading next = Pace.next(at.reading(), clocks.stream(name), clocks.streams(), keeper.ends(), nudge);
    SortedMap<String, Long> times = clocks.times(name);
    boolean moves = !next.equals(at.reading()) || !times.equals(at.partitions) || (!told && next.isKnown());
    told |= moves;
    newest = moves ? at.to(next, times) : at;
    clocks.shows(name, next);
    if (keeper.clocksAreSet()) clocks.raiseWatermark();
    keeper.clockAt(name, !moves && (next.max() >= Pace.END || !keeper.isDraining()));
    keeper.endIfCaughtUp();
    return newest;
  }

  @Override public Offset latestOffset() {
    throw new UnsupportedOperationException("the time depends on what was shown before");
  }

  @Override public ReadLimit getDefaultReadLimit() { return ReadLimit.allAvailable(); }

  @Override public Offset reportLatestOffset() { return newest; }

  @Override public Offset initialOffset() { return ClockOffset.START; }

  @Override public Offset deserializeOffset(String json) { return ClockOffset.parse(json); }

  @Override public InputPartition[] planInputPartitions(Offset from, Offset to) {
    return new InputPartition[0];
  }

  @Override public PartitionReaderFactory createReaderFactory() {
    return split -> {
      throw new UnsupportedOperationException("a clock has no rows");
    };
  }

  @Override public void commit(Offset end) {}

  @Override public void stop() {}

  /** Tells how far the stream and each of its partitions have come. */
  @Override public Map<String, String> metrics(Optional<Offset> consumed) {
    return Map.of("eventTime", clocks.told(name));
  }

  /** Not the id of any source: what is told of sources leaves clocks out by that. */
  @Override public String toString() { return "clock of " + name; }
}
