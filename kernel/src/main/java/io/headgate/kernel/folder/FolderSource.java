package io.headgate.kernel.folder;

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

/** Folders of data files as a streaming source; {@link FolderOptions} has its options. */
public final class FolderSource implements TableProvider {
  @Override public StructType inferSchema(CaseInsensitiveStringMap options) {
    return RawRecord.SCHEMA;
  }

  @Override public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> options) {
    return new Folder(FolderOptions.of(new CaseInsensitiveStringMap(options)));
  }

  private record Folder(FolderOptions options) implements SupportsRead {
    @Override public String name() { return "folder(" + options.folder() + ")"; }

    @SuppressWarnings("deprecation")
    @Override public StructType schema() { return RawRecord.SCHEMA; }

    @Override public Set<TableCapability> capabilities() { return Set.of(TableCapability.MICRO_BATCH_READ); }

    @Override public ScanBuilder newScanBuilder(CaseInsensitiveStringMap ignored) {
      return () -> new Scan() {
        @Override public StructType readSchema() { return RawRecord.SCHEMA; }

        @Override public String description() { return name(); }

        @Override public MicroBatchStream toMicroBatchStream(String checkpoint) { return new FolderStream(options, checkpoint); }
      };
    }
  }
}
