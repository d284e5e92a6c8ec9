package io.headgate.kernel.time;

import io.headgate.kernel.gate.Gatekeeper;
import io.headgate.kernel.rows.Bucket;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.Header;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Reads a stream's clock: at most one row a batch. */
final class ClockStream implements MicroBatchStream, SupportsAdmissionControl {
  private final String name;
  private final Gatekeeper keeper;
  private final Clocks clocks;
  private final long start;
  private final long nudgeEvery;
  /** Whether Spark has been told the time since this process started. */
  private boolean told;
  private ClockOffset newest = ClockOffset.START;

  ClockStream(CaseInsensitiveStringMap options) {
    name = options.get("clock.stream");
    keeper = Gatekeeper.of(options.get("gate"));
    clocks = Clocks.of(options.get("gate"));
    start = options.getLong("clock.start", GreatestTime.NONE);
    nudgeEvery = options.getLong("clock.nudge", Pace.NEVER);
    clocks.register(name, options.getLong("clock.delay", 0), options.getLong("clock.idle", Pace.NEVER));
    // Where it begins with a time, streams wait until Spark has learned it: their events may be late by it.
    keeper.registerClock(name, start == GreatestTime.NONE);
  }

  @Override public Offset latestOffset(Offset from, ReadLimit limit) {
    keeper.pass();
    ClockOffset at = (ClockOffset) from;
    clocks.shows(name, Math.max(at.max, start));
    if (at.n > 0) keeper.clockIsSet(name);
    boolean nudge = clocks.isNudgeDue(name, nudgeEvery);
    Reading next = Pace.next(at.reading(), clocks.stream(name), clocks.streams(), keeper.ends(), nudge);
    boolean moves = !next.equals(at.reading()) || (!told && next.isKnown());
    told |= moves;
    newest = moves ? at.to(next) : at;
    clocks.shows(name, next.max());
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
    Reading reading = ((ClockOffset) to).reading();
    return from.equals(to) || !reading.isKnown() ? new InputPartition[0] : new InputPartition[] {new Tick(reading.time())};
  }

  @Override public PartitionReaderFactory createReaderFactory() { return ClockStream::read; }

  @Override public void commit(Offset end) {}

  @Override public void stop() {}

  /** Not the id of any source: what is told of sources leaves clocks out by that. */
  @Override public String toString() { return "clock of " + name; }

  private record Tick(long time) implements InputPartition {}

  private static PartitionReader<InternalRow> read(InputPartition split) {
    var header = new Header();
    header.eventTime = ((Tick) split).time();
    InternalRow row = new GenericInternalRow(
        new Object[] {Bucket.ofOffset(0), header.envelope(Envelope.HEARTBEAT, 0)});
    return new PartitionReader<>() {
      private boolean done;

      @Override public boolean next() {
        boolean first = !done;
        done = true;
        return first;
      }

      @Override public InternalRow get() { return row; }

      @Override public void close() {}
    };
  }
}
