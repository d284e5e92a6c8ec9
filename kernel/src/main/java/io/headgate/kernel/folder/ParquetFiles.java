package io.headgate.kernel.folder;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapred.FileSplit;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.ParquetInputFormat;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.parquet.ParquetReadSupport;
import org.apache.spark.sql.execution.datasources.parquet.ParquetToSparkSchemaConverter;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * Parquet files, by Spark's own reader, which decodes columns many values at a time (internal classes, seen in 4.3.0). A row
 * group belongs to the part that its middle is in.
 */
final class ParquetFiles implements RowFiles {
  private static final String REQUESTED = "org.apache.spark.sql.parquet.row.requested_schema";
  /** The name under which Spark's reader gives the number of a row. */
  private static final String NUMBER = "_tmp_metadata_row_index";
  private static final String CORRECTED = "CORRECTED";
  private static final int ROWS_AT_ONCE = 4096;

  private static Configuration configured(DataFile file) throws IOException {
    Configuration conf = StoredFiles.configured(Places.hadoop(), file.path.toUri().getScheme());
    conf.set(ParquetInputFormat.READ_SUPPORT_CLASS, ParquetReadSupport.class.getName());
    conf.set("spark.sql.session.timeZone", "UTC");
    conf.setBoolean("spark.sql.caseSensitive", true);
    conf.setBoolean("spark.sql.parquet.binaryAsString", false);
    conf.setBoolean("spark.sql.parquet.int96AsTimestamp", true);
    conf.setBoolean("spark.sql.parquet.inferTimestampNTZ.enabled", true);
    conf.setBoolean("spark.sql.legacy.parquet.nanosAsLong", false);
    conf.setBoolean("spark.sql.parquet.fieldId.read.enabled", false);
    conf.setBoolean("spark.sql.optimizer.nestedSchemaPruning.enabled", true);
    StoredFiles.find(file.path, conf);
    return conf;
  }

  @Override public StructType schema(DataFile file) throws IOException {
    Configuration conf = configured(file);
    try (var reader = ParquetFileReader.open(HadoopInputFile.fromPath(StoredFiles.of(file.path), conf))) {
      return new ParquetToSparkSchemaConverter(conf).convert(reader.getFooter().getFileMetaData().getSchema());
    }
  }

  @Override public Rows open(DataFile file, long from, long to, StructType columns) throws IOException {
    Configuration conf = configured(file);
    conf.set(REQUESTED, columns.add(NUMBER, DataTypes.LongType, true).json());
    var reader = new VectorizedParquetRecordReader(null, CORRECTED, "UTC", CORRECTED, "UTC", false, ROWS_AT_ONCE);
    try {
      reader.initialize(
          new FileSplit(StoredFiles.of(file.path), from, to - from, new String[0]),
          new TaskAttemptContextImpl(conf, new TaskAttemptID()));
      reader.initBatch(new StructType(), InternalRow.empty());
      return new ParquetRows(reader, columns.length());
    } catch (InterruptedException e) {
      reader.close();
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", e);
    } catch (IOException | RuntimeException e) {
      reader.close();
      throw e;
    }
  }

  private static final class ParquetRows implements Rows {
    private final VectorizedParquetRecordReader reader;
    private final int columns;
    private InternalRow row;

    ParquetRows(VectorizedParquetRecordReader reader, int columns) {
      this.reader = reader;
      this.columns = columns;
    }

    @Override public boolean next() throws IOException {
      if (!reader.nextKeyValue()) return false;
      row = (InternalRow) reader.getCurrentValue();
      return true;
    }

    @Override public InternalRow row() {
      return row;
    }

    @Override public long number() {
      return row.getLong(columns);
    }

    @Override public void close() throws IOException {
      reader.close();
    }
  }
}
