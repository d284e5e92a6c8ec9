package io.headgate.kernel.time;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The clock of one timed stream as a source of its own, without rows: its position in Spark's offset log is the stream's time.
 *
 * <p>So a restart knows the time of every partition, and batches run in which idle streams keep pace, results come that are
 * due, and time ends when a job is drained.
 *
 * <p>Options: {@code gate} (the query's), {@code clock.stream} (the stream's id), {@code clock.delay} (by how much the
 * watermark trails it), {@code clock.idle} (for how long it holds others back while it brings nothing), {@code clock.nudge}
 * (how often a quiet flow's timers are looked at), {@code clock.start} (the event time it begins with): in milliseconds, the
 * last three only where there is such a thing; {@code clock.partitions} (likewise of each partition, as JSON).
 */
public final class ClockSource implements TableProvider {
  static final StructType SCHEMA = StructType.fromDDL("_1 INT, _2 BINARY");

  @Override public StructType inferSchema(CaseInsensitiveStringMap options) {
    return SCHEMA;
  }

  @Override public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> options) {
    return new ClockTable(new CaseInsensitiveStringMap(options));
  }

  private record ClockTable(CaseInsensitiveStringMap options) implements SupportsRead {
    @Override public String name() { return "clock(" + options.get("clock.stream") + ")"; }

    @SuppressWarnings("deprecation")
    @Override public StructType schema() { return SCHEMA; }

    @Override public Set<TableCapability> capabilities() { return Set.of(TableCapability.MICRO_BATCH_READ); }

    @Override public ScanBuilder newScanBuilder(CaseInsensitiveStringMap ignored) {
      return () -> new Scan() {
        @Override public StructType readSchema() { return SCHEMA; }

        @Override public String description() { return name(); }

        @Override public MicroBatchStream toMicroBatchStream(String checkpoint) { return new ClockStream(options); }
      };
    }
  }
}
