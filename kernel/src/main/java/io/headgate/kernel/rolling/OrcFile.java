package io.headgate.kernel.rolling;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Locale;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.CompressionKind;
import org.apache.orc.TypeDescription;
import org.apache.orc.Writer;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;

/** Packed rows as ORC: timestamps are instants, in UTC, and dates of all times are those of the present calendar. */
final class OrcFile implements VisibleFile {
  /** Of columns in memory; several files may be open at once. */
  private static final long STRIPE = 64L << 20;

  private final Writer writer;
  private final VectorizedRowBatch batch;
  private final OrcColumn[] columns;
  private final UnsafeRow row;

  OrcFile(Sheet sheet, Path file) throws IOException {
    StructType schema = sheet.columns();
    TypeDescription type = OrcColumn.type(schema);
    row = new UnsafeRow(schema.length());
    var path = new org.apache.hadoop.fs.Path(file.toUri());
    var conf = new Configuration(false);
    // Its checksums would be files of their own.
    conf.set("fs.file.impl", "org.apache.hadoop.fs.RawLocalFileSystem");
    conf.setBoolean("fs.file.impl.disable.cache", true);
    writer = org.apache.orc.OrcFile.createWriter(path, org.apache.orc.OrcFile.writerOptions(conf)
        .setSchema(type)
        .compress(codec(sheet.compression()))
        .stripeSize(STRIPE)
        .setProlepticGregorian(true)
        .useUTCTimestamp(true));
    batch = type.createRowBatch();
    columns = new OrcColumn[schema.length()];
    StructField[] fields = schema.fields();
    for (int i = 0; i < columns.length; i++) columns[i] = OrcColumn.of(fields[i].dataType(), batch.cols[i]);
  }

  private static CompressionKind codec(String compression) {
    return switch (compression) {
      case "gzip" -> CompressionKind.ZLIB;
      default -> CompressionKind.valueOf(compression.toUpperCase(Locale.ROOT));
    };
  }

  @Override public void row(byte[] bytes, int start, int length) throws IOException {
    row.pointTo(bytes, Platform.BYTE_ARRAY_OFFSET + (long) start, length);
    int at = batch.size++;
    for (int i = 0; i < columns.length; i++) columns[i].put(at, row, i);
    if (batch.size == batch.getMaxSize()) flush();
  }

  private void flush() throws IOException {
    writer.addRowBatch(batch);
    batch.reset();
  }

  @Override public void close() throws IOException {
    if (batch.size > 0) flush();
    writer.close();
  }
}
