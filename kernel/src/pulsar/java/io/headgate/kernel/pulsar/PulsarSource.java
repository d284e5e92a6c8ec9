package io.headgate.kernel.pulsar;

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
 * Topics on Pulsar as a streaming source.
 *
 * <p>Options: {@code client} (JSON, see {@link ClientOptions}), {@code topics} (full names, separated by commas) or
 * {@code pattern} with {@code namespace}, {@code start} (see {@link StartPosition}), {@code max.bytes} (a batch's bound, by
 * estimate), {@code max.record} (bytes), {@code splits} (tasks a batch is read with at most), {@code on.data.loss}
 * ({@code fail} or {@code continue}), {@code meta} ({@code false}: nobody asks for keys and properties, and keys are carried
 * only where a record has no value), {@code subscription} (the job's own), {@code gate} (the query's run) and
 * {@code gate.source} (the source's uid).
 */
public final class PulsarSource implements TableProvider {
  @Override public StructType inferSchema(CaseInsensitiveStringMap options) {
    return RawRecord.SCHEMA;
  }

  @Override public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> options) {
    return new Topics(SourceOptions.parse(new CaseInsensitiveStringMap(options)));
  }

  private record Topics(SourceOptions options) implements SupportsRead {
    @Override public String name() { return options.description(); }

    @SuppressWarnings("deprecation")
    @Override public StructType schema() { return RawRecord.SCHEMA; }

    @Override public Set<TableCapability> capabilities() { return Set.of(TableCapability.MICRO_BATCH_READ); }

    @Override public ScanBuilder newScanBuilder(CaseInsensitiveStringMap ignored) {
      return () -> new Scan() {
        @Override public StructType readSchema() { return RawRecord.SCHEMA; }

        @Override public String description() { return name(); }

        @Override public MicroBatchStream toMicroBatchStream(String checkpoint) { return new PulsarStream(options); }
      };
    }
  }
}
