package io.headgate.kernel.process;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
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
 * Wakes the process operators of a query when a processing-time timer of theirs is due: its rows have every bucket called, and
 * a batch started for them where nothing else is new.
 *
 * <p>Options: {@code gate} (the query's), {@code wake.addresses} (of the operators with timers, separated by commas; none where
 * it is empty), {@code wake.known} ({@code true} if the operators begin with no state, so that a new checkpoint needs no wake).
 */
public final class WakeSource implements TableProvider {
  static final StructType SCHEMA = StructType.fromDDL("_1 INT, _2 BINARY");

  private static final Map<String, Alarms> ALL = new ConcurrentHashMap<>();

  /** Has the wakes of a query follow the timers that its tasks report. */
  public static void follow(String run, Alarms alarms) {
    ALL.put(run, alarms);
  }

  public static void forget(String run) {
    ALL.remove(run);
  }

  /** Returns the timers of a query; null if it has no operator that reports any. */
  static Alarms alarms(String run) {
    return ALL.get(run);
  }

  @Override public StructType inferSchema(CaseInsensitiveStringMap options) {
    return SCHEMA;
  }

  @Override public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> options) {
    return new WakeTable(new CaseInsensitiveStringMap(options));
  }

  private record WakeTable(CaseInsensitiveStringMap options) implements SupportsRead {
    @Override public String name() { return "wakes(" + options.get("wake.addresses") + ")"; }

    @SuppressWarnings("deprecation")
    @Override public StructType schema() { return SCHEMA; }

    @Override public Set<TableCapability> capabilities() { return Set.of(TableCapability.MICRO_BATCH_READ); }

    @Override public ScanBuilder newScanBuilder(CaseInsensitiveStringMap ignored) {
      return () -> new Scan() {
        @Override public StructType readSchema() { return SCHEMA; }

        @Override public String description() { return name(); }

        @Override public MicroBatchStream toMicroBatchStream(String checkpoint) { return new WakeStream(options); }
      };
    }
  }
}
