package io.headgate.kernel.sink;

import io.headgate.kernel.PortTally;
import io.headgate.kernel.gate.Gatekeeper;
import io.headgate.kernel.time.Clocks;
import io.headgate.kernel.testing.CrashPoint;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.streaming.ReportsSinkMetrics;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The one sink of a flow: main and side outputs, dead letters and counts, in the same epoch.
 *
 * <p>Rows are envelopes with the bucket they are spread by. Options: {@code run} (the query's), {@code job}, {@code lineage}
 * (what all that is written is named after), {@code tasks} (how many write an epoch), {@code outputs} (JSON, see
 * {@link Outputs}), and for logs {@code clusters}, {@code sources}, {@code fence} (JSON), {@code placed.since} and
 * {@code unfinished.since}, see {@link Logs}.
 */
public final class FlowSink implements TableProvider {
  private static final StructType SCHEMA = StructType.fromDDL("_1 BINARY, _2 BINARY");

  /** Lets go of what a query that has ended keeps open in this process. */
  public static void forget(String run) {
    Logs.forget(run);
    PortTally.forget(run);
  }

  @Override public StructType inferSchema(CaseInsensitiveStringMap options) {
    return SCHEMA;
  }

  @Override public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> options) {
    return new Sink(new CaseInsensitiveStringMap(options));
  }

  private static final class Sink implements SupportsWrite, ReportsSinkMetrics {
    private final Outputs outputs;
    private final String run;
    private final String lineage;
    private final Logs logs;
    private final RowFeed feed;
    private final Gatekeeper gate;
    private boolean prepared;
    private volatile Map<String, String> counts = Map.of();

    Sink(CaseInsensitiveStringMap options) {
      outputs = Outputs.parse(options.get("outputs"));
      run = options.get("run");
      lineage = options.get("lineage");
      logs = Logs.of(options, outputs);
      feed = RowFeed.of(run);
      gate = Gatekeeper.of(run);
      gate.first(this::prepare);
      gate.between(logs::settled, logs::finish);
    }

    /**
     * Makes the clusters ready, once.
     *
     * <p>The gate asks for it before there is anything to write. A batch that was begun before a crash passes no gate, and
     * asks for it itself.
     */
    private synchronized void prepare() {
      if (prepared) return;
      logs.prepare();
      prepared = true;
    }

    @Override public String name() { return "headgate"; }

    @SuppressWarnings("deprecation")
    @Override public StructType schema() { return SCHEMA; }

    @Override public Set<TableCapability> capabilities() { return EnumSet.of(TableCapability.STREAMING_WRITE); }

    @Override public WriteBuilder newWriteBuilder(LogicalWriteInfo info) { return new Builder(this); }

    /** Rows per output of the last epoch that committed, and under a name that no output has what {@link Telemetry} tells. */
    @Override public Map<String, String> metrics() { return counts; }

    /** @param began when the epoch began to be written; 0 where nothing was */
    void committed(List<FlowWriter.Done> tasks, long began) {
      long[] sums = new long[outputs.all().size()];
      int[] shown = new int[sums.length];
      for (FlowWriter.Done task : tasks) {
        for (int i = 0; i < sums.length; i++) sums[i] += task.counts()[i];
        for (int i = 0; i < task.shown().size(); i++) {
          int of = task.shownOf().get(i);
          // Each task holds as many as may be shown of the whole batch.
          if (++shown[of] > outputs.all().get(of).shown()) continue;
          feed.add(outputs.all().get(of).id(), ShownText.of(task.shown().get(i)));
        }
      }
      var now = new LinkedHashMap<String, String>();
      for (int i = 0; i < sums.length; i++) now.put(outputs.all().get(i).id(), Long.toString(sums[i]));
      now.put(Telemetry.NAME, telemetry(sums, tasks, System.currentTimeMillis() - began));
      counts = now;
      logs.written(tasks);
      Clocks.batchWritten(run);
      gate.batchWritten();
    }

    /** Figures are no reason to fail a batch, which would fail the same way at every attempt. */
    private String telemetry(long[] sums, List<FlowWriter.Done> tasks, long tookMs) {
      try {
        return Telemetry.of(outputs, sums, PortTally.take(run), tasks, tookMs);
      } catch (RuntimeException error) {
        return "{}";
      }
    }
  }

  /** The marker interface admits output mode update, which stateful operators run in. */
  private record Builder(Sink sink) implements SupportsStreamingUpdateAsAppend {
    @Override public Write build() { return new EpochWrite(sink); }
  }

  private static final class EpochWrite implements Write, StreamingWrite {
    private final Sink sink;
    private long began;

    EpochWrite(Sink sink) {
      this.sink = sink;
    }

    @Override public StreamingWrite toStreaming() { return this; }

    /** A task that was tried twice finds its rows in place: nothing has to decide between the tries. */
    @Override public boolean useCommitCoordinator() { return false; }

    @Override public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
      BatchLabel.put();
      sink.prepare();
      began = System.currentTimeMillis();
      return new Factory(sink.outputs, sink.lineage, sink.logs, info.numPartitions(), began);
    }

    @Override public void commit(long epoch, WriterCommitMessage[] messages) {
      CrashPoint.at("epoch-committed");
      sink.committed(Arrays.stream(messages).map(m -> (FlowWriter.Done) m).toList(), began);
    }

    @Override public void abort(long epoch, WriterCommitMessage[] messages) {}
  }

  private record Factory(Outputs outputs, String lineage, Logs logs, int partitions, long began)
      implements StreamingDataWriterFactory {
    @Override public FlowWriter createWriter(int partition, long task, long epoch) {
      return new FlowWriter(outputs, lineage, logs, new FlowWriter.Turn(partition, partitions, task, epoch, began));
    }
  }
}
