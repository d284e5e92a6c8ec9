package io.headgate.kernel.process;

import io.headgate.kernel.gate.Gatekeeper;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.Header;
import java.util.Arrays;
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

/**
 * Moves when a processing-time timer is due, and once where nothing is known of the timers in state; each move is a batch.
 *
 * <p>It does not register with the {@link Gatekeeper}: timers that are still to come keep no job from ending.
 */
final class WakeStream implements MicroBatchStream, SupportsAdmissionControl {
  /** Bounds the batches of timers that are due one shortly after the other, and of a clock that was set back. */
  private static final long PAUSE_NANOS = 100_000_000L;

  private final WakeOffset start = new WakeOffset(0, 0);
  private final Gatekeeper keeper;
  private final String run;
  private final int[] addresses;
  private final boolean beginsEmpty;
  /** Whether all timers in state have been reported, or will be by the batch that was planned. */
  private boolean known;
  private long movedAt;
  private boolean moved;
  private WakeOffset newest = start;

  WakeStream(CaseInsensitiveStringMap options) {
    run = options.get("gate");
    keeper = Gatekeeper.of(run);
    addresses = Arrays.stream(options.getOrDefault("wake.addresses", "").split(","))
        .filter(each -> !each.isBlank()).mapToInt(each -> Integer.parseInt(each.trim())).toArray();
    beginsEmpty = options.getBoolean("wake.known", false);
  }

  @Override public Offset latestOffset(Offset from, ReadLimit limit) {
    keeper.pass();
    var at = (WakeOffset) from;
    // Of a checkpoint that has a batch, Spark hands in a position that it has read from its log: another object.
    if (at == start && beginsEmpty) known = true;
    newest = isDue() ? move(at) : at;
    return newest;
  }

  private boolean isDue() {
    if (addresses.length == 0 || (moved && System.nanoTime() - movedAt < PAUSE_NANOS)) return false;
    // What a timer writes may need a table; and the first batch of state that is taken over brings its watermark.
    if (keeper.isLoading() || !keeper.clocksAreSet()) return false;
    Alarms alarms = WakeSource.alarms(run);
    return !known || (alarms != null && alarms.earliest() <= System.currentTimeMillis());
  }

  private WakeOffset move(WakeOffset at) {
    known = true;
    moved = true;
    movedAt = System.nanoTime();
    return at.next(System.currentTimeMillis());
  }

  @Override public Offset latestOffset() {
    throw new UnsupportedOperationException("a wake depends on those before");
  }

  @Override public ReadLimit getDefaultReadLimit() { return ReadLimit.allAvailable(); }

  @Override public Offset reportLatestOffset() { return newest; }

  @Override public Offset initialOffset() { return start; }

  @Override public Offset deserializeOffset(String json) { return WakeOffset.parse(json); }

  @Override public InputPartition[] planInputPartitions(Offset from, Offset to) {
    boolean wakes = ((WakeOffset) from).n < ((WakeOffset) to).n;
    return wakes ? new InputPartition[] {new Wake(addresses)} : new InputPartition[0];
  }

  @Override public PartitionReaderFactory createReaderFactory() {
    return split -> new WakeReader(((Wake) split).addresses);
  }

  @Override public void commit(Offset end) {}

  @Override public void stop() {}

  /** Not the id of any source: what is told of sources leaves wakes out by that. */
  @Override public String toString() { return "wakes of process operators"; }

  private record Wake(int[] addresses) implements InputPartition {}

  /** Reads one row for each bucket of each operator. */
  private static final class WakeReader implements PartitionReader<InternalRow> {
    private final byte[][] envelopes;
    private int next = -1;

    WakeReader(int[] addresses) {
      var header = new Header();
      header.source = Envelope.NO_SOURCE;
      envelopes = new byte[addresses.length][];
      for (int i = 0; i < addresses.length; i++) envelopes[i] = header.envelope(Envelope.WAKE, addresses[i]);
    }

    @Override public boolean next() {
      return ++next < envelopes.length * ProcessSpec.BUCKETS;
    }

    @Override public InternalRow get() {
      return new GenericInternalRow(new Object[] {next % ProcessSpec.BUCKETS, envelopes[next / ProcessSpec.BUCKETS]});
    }

    @Override public void close() {}
  }
}
