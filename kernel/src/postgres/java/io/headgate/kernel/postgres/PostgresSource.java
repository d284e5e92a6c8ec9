package io.headgate.kernel.postgres;

import io.headgate.kernel.rows.RawRecord;
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
 * A table of a database as a source of changes: all of its rows at first, and at each refresh what is different.
 *
 * <p>Options: {@code client} (JSON, see {@link PostgresClient}), {@code table}, {@code columns} and {@code key} (JSON, see
 * {@link TableRead}), {@code topic} (its name in the flow), {@code start} ({@code earliest} or a position), {@code refresh.ms}
 * (0: never), {@code max.bytes} (a batch's bound), {@code max.record} (bytes), {@code gate} (the query's run) and
 * {@code gate.source} (the source's uid).
 */
public final class PostgresSource implements TableProvider {
  @Override public StructType inferSchema(CaseInsensitiveStringMap options) {
    return RawRecord.SCHEMA;
  }

  @Override public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> options) {
    return new Rows(new CaseInsensitiveStringMap(options));
  }

  private record Rows(CaseInsensitiveStringMap options) implements SupportsRead {
    @Override public String name() { return "postgres(" + options.get("topic") + ")"; }

    @SuppressWarnings("deprecation")
    @Override public StructType schema() { return RawRecord.SCHEMA; }

    @Override public Set<TableCapability> capabilities() { return Set.of(TableCapability.MICRO_BATCH_READ); }

    @Override public ScanBuilder newScanBuilder(CaseInsensitiveStringMap ignored) {
      return () -> new Scan() {
        @Override public StructType readSchema() { return RawRecord.SCHEMA; }

        @Override public String description() { return name(); }

        @Override public MicroBatchStream toMicroBatchStream(String checkpoint) { return new PostgresStream(options, checkpoint); }
      };
    }
  }
}
