package io.headgate.kernel.folder;

import io.headgate.kernel.CodedFailure;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import io.headgate.kernel.source.Finding;
import io.headgate.kernel.source.TaskFindings;
import java.io.IOException;
import java.io.Serializable;
import java.nio.channels.ClosedByInterruptException;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;

/**
 * Reads the parts of files of one task.
 *
 * <p>A file that cannot be read for what it contains is a record that says so, of the part with the file's first byte; what is
 * corrupted behind readable records is one where reading ends. What the storage fails to do ends the task.
 */
final class FolderReader implements PartitionReader<InternalRow> {
  /** Of what a library says of a corrupted file. */
  private static final int SHOWN = 300;

  /** What every task is told. */
  record Settings(FolderOptions options, TaskFindings findings) implements PartitionReaderFactory, Serializable {
    @Override public PartitionReader<InternalRow> createReader(InputPartition split) {
      return new FolderReader(this, (FolderSplit) split);
    }
  }

  private final FolderOptions options;
  private final TaskFindings findings;
  private final FolderSplit split;
  private final StructType own;
  private final PartitionValues partitions;
  private final GenericInternalRow row = new GenericInternalRow(new Object[1]);
  private int next;
  private FolderSplit.Range range;
  private FolderRecord form;
  private FileRecords records;

  private FolderReader(Settings settings, FolderSplit split) {
    options = settings.options;
    findings = settings.findings;
    this.split = split;
    own = FolderDecoder.own(options.schema(), options.partitions());
    partitions = options.partitions().isEmpty() ? null : new PartitionValues(options.schema(), options.partitions());
  }

  @Override public boolean next() throws IOException {
    for (;;) {
      if (records == null && next >= split.ranges().size()) return false;
      byte[] record = records == null ? open(split.ranges().get(next++)) : read();
      if (record == null) continue;
      row.update(0, record);
      return true;
    }
  }

  /** Opens a part, and returns a record if it cannot be read. */
  private byte[] open(FolderSplit.Range range) throws IOException {
    this.range = range;
    form = new FolderRecord(options.topic(), range.file(), split.lane());
    try {
      DataFile file = DataFile.find(options.path(range.file()), range.file());
      if (partitions != null) partitions.of(range.file().path());
      records = records(file);
      return null;
    } catch (DataFile.Gone e) {
      lost(e);
      return null;
    } catch (BadRecord | IOException | RuntimeException e) {
      String why = why(e);
      return range.from() > 0 ? null : form.refused(0, Reason.BAD_FILE, why);
    }
  }

  private FileRecords records(DataFile file) throws IOException, BadRecord {
    return switch (options.format()) {
      case "parquet" -> new RowRecords(new ParquetFiles(), file, range, form, own);
      case "orc" -> new RowRecords(new OrcFiles(), file, range, form, own);
      case "avro" -> new AvroRecords(file, range, form, own);
      default -> new LineRecords(file, range, form, options, own);
    };
  }

  private void lost(DataFile.Gone why) {
    if (options.failOnLoss())
      throw new CodedFailure(CodedFailure.DATA_LOST, why.getMessage() + "; continue without it: --on-data-loss continue");
    findings.add(new Finding(Finding.Kind.DATA_LOST, options.topic(), why.getMessage()));
  }

  /** Returns the next record of the open part, or null at its end. */
  private byte[] read() throws IOException {
    try {
      byte[] record = records.next();
      if (record == null) close();
      return record;
    } catch (BadRecord | IOException | RuntimeException e) {
      long place = records.place();
      String why = why(e);
      close();
      String unit = options.isLines() ? "byte " : "row ";
      return form.refused(place, Reason.BAD_FILE, "corrupted from " + unit + place + " on: " + why);
    }
  }

  /** Returns what is wrong with the content of a file; throws what is no fault of the content. */
  private String why(Exception failure) throws IOException {
    TaskContext task = TaskContext.get();
    boolean killed = Thread.currentThread().isInterrupted() || (task != null && task.isInterrupted());
    if (killed || failure instanceof CodedFailure || DataFile.Unreadable.isBehind(failure) || isInterruption(failure)) {
      if (failure instanceof RuntimeException unchecked) throw unchecked;
      throw failure instanceof IOException io ? io : new IOException(failure);
    }
    if (failure instanceof BadRecord) return failure.getMessage();
    String text = String.valueOf(failure.getMessage()).strip().replaceAll("\\s+", " ");
    return failure.getClass().getSimpleName() + ": " + (text.length() > SHOWN ? text.substring(0, SHOWN) + "…" : text);
  }

  private static boolean isInterruption(Throwable failure) {
    for (Throwable each = failure; each != null; each = each.getCause())
      if (each instanceof InterruptedException || each instanceof ClosedByInterruptException
          || each instanceof java.io.InterruptedIOException) return true;
    return false;
  }

  @Override public InternalRow get() {
    return row;
  }

  @Override public void close() throws IOException {
    FileRecords open = records;
    records = null;
    if (open == null) return;
    try {
      open.close();
    } catch (IOException | RuntimeException e) {
      // All that counts was read, and what is wrong with it was said.
      if (DataFile.Unreadable.isBehind(e)) return;
    }
  }
}
