package io.headgate.kernel.rolling;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Locale;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.api.WriteSupport;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.io.LocalOutputFile;
import org.apache.parquet.io.OutputFile;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;

/**
 * Packed rows as Parquet: timestamps as microseconds in UTC, decimals, lists and maps in their standard forms.
 *
 * <p>Spark's own class turns rows into columns; it is private, and was seen in 4.3.0.
 */
final class ParquetFile implements VisibleFile {
  /** Of columns in memory; several files may be open at once. */
  private static final long ROW_GROUP = 64L << 20;

  private final ParquetWriter<InternalRow> writer;
  private final UnsafeRow row;

  ParquetFile(Sheet sheet, Path file) throws IOException {
    StructType schema = sheet.columns();
    row = new UnsafeRow(schema.length());
    writer = new Builder(new LocalOutputFile(file))
        .withConf(settings(schema))
        .withCompressionCodec(codec(sheet.compression()))
        .withRowGroupSize(ROW_GROUP)
        .build();
  }

  private static CompressionCodecName codec(String compression) {
    return compression.equals("none")
        ? CompressionCodecName.UNCOMPRESSED : CompressionCodecName.valueOf(compression.toUpperCase(Locale.ROOT));
  }

  private static Configuration settings(StructType schema) {
    var conf = new Configuration(false);
    ParquetWriteSupport.setSchema(schema, conf);
    conf.set(SQLConf.PARQUET_WRITE_LEGACY_FORMAT().key(), "false");
    conf.set(SQLConf.PARQUET_OUTPUT_TIMESTAMP_TYPE().key(), "TIMESTAMP_MICROS");
    conf.set(SQLConf.PARQUET_FIELD_ID_WRITE_ENABLED().key(), "false");
    conf.set(SQLConf.PARQUET_ANNOTATE_VARIANT_LOGICAL_TYPE().key(), "false");
    return conf;
  }

  @Override public void row(byte[] bytes, int start, int length) throws IOException {
    row.pointTo(bytes, Platform.BYTE_ARRAY_OFFSET + (long) start, length);
    writer.write(row);
  }

  @Override public void close() throws IOException {
    writer.close();
  }

  private static final class Builder extends ParquetWriter.Builder<InternalRow, Builder> {
    Builder(OutputFile file) {
      super(file);
    }

    @Override protected Builder self() {
      return this;
    }

    @Override protected WriteSupport<InternalRow> getWriteSupport(Configuration conf) {
      return new ParquetWriteSupport();
    }
  }
}
