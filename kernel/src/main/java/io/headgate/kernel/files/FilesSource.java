package io.headgate.kernel.files;

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
 * Embedded topics as a streaming source: a topic is a folder, a record a line of a {@code *.jsonl} file in it.
 *
 * <p>Options: {@code path} (the topic's folder), {@code start} ({@code earliest}, {@code latest} or a position's JSON),
 * {@code max.bytes} (a batch's bound), {@code splits} (tasks a batch is read with), {@code max.record} (bytes).
 */
public final class FilesSource implements TableProvider {
  @Override public StructType inferSchema(CaseInsensitiveStringMap options) {
    return RawRecord.SCHEMA;
  }

  @Override public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> options) {
    return new Topic(new CaseInsensitiveStringMap(options));
  }

  private record Topic(CaseInsensitiveStringMap options) implements SupportsRead {
    @Override public String name() { return "files(" + options.get("path") + ")"; }

    @SuppressWarnings("deprecation")
    @Override public StructType schema() { return RawRecord.SCHEMA; }

    @Override public Set<TableCapability> capabilities() { return Set.of(TableCapability.MICRO_BATCH_READ); }

    @Override public ScanBuilder newScanBuilder(CaseInsensitiveStringMap ignored) {
      return () -> new Scan() {
        @Override public StructType readSchema() { return RawRecord.SCHEMA; }

        @Override public String description() { return name(); }

        @Override public MicroBatchStream toMicroBatchStream(String checkpoint) { return new FilesStream(options); }
      };
    }
  }
}
