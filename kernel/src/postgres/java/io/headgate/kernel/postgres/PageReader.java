package io.headgate.kernel.postgres;

import io.headgate.kernel.rows.RawRecord;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.fs.Path;
import org.apache.spark.deploy.SparkHadoopUtil;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;

/** Hands on the changes of a page as records: JSON, of which one that is marked ends its key's row. */
final class PageReader implements PartitionReader<InternalRow> {
  /** One ordered sequence: what is read later is newer. */
  private static final int LANE = 1;

  private final PageSplit split;
  private final byte[] topic;
  private final GenericInternalRow reused = new GenericInternalRow(new Object[1]);
  private byte[] lines;
  private int at;
  private long number;

  PageReader(InputPartition split) {
    this.split = (PageSplit) split;
    topic = this.split.topic().getBytes(StandardCharsets.UTF_8);
    number = this.split.first();
  }

  @Override public boolean next() throws IOException {
    if (lines == null) lines = read();
    if (at == lines.length) return false;
    int end = at;
    while (lines[end] != '\n') end++;
    int length = end - at;
    int kept = length > split.maxRecord() ? Math.min(length, RawRecord.KEPT) : length;
    byte[] record = RawRecord.make(
        topic, 0, number, split.at(), RawRecord.NO_TIME, LANE, number, length, RawRecord.NONE, RawRecord.NONE, kept);
    System.arraycopy(lines, at, record, record.length - kept, kept);
    reused.update(0, record);
    number++;
    at = end + 1;
    return true;
  }

  private byte[] read() throws IOException {
    var file = new Path(split.file());
    try (InputStream in = file.getFileSystem(SparkHadoopUtil.get().conf()).open(file)) {
      return SpoolPage.read(in, split.file());
    } catch (FileNotFoundException e) {
      throw SpoolPage.gone(split.file(), e);
    }
  }

  @Override public InternalRow get() {
    return reused;
  }

  @Override public void close() {
    lines = null;
  }
}
