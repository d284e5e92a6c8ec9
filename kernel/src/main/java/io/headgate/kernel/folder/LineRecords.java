package io.headgate.kernel.folder;

import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.types.StructType;

/** The lines that begin in a part of a file. A blank line is a record of a text file alone. */
final class LineRecords implements FileRecords {
  private final FolderRecord form;
  private final long to;
  private final boolean blanks;
  private final LineReader lines;

  LineRecords(DataFile file, FolderSplit.Range range, FolderRecord form, FolderOptions options, StructType declared)
      throws IOException, BadRecord {
    this.form = form;
    blanks = options.format().equals("text");
    boolean compressed = FolderOptions.isCompressed(file.file.path());
    // A compressed file belongs to the part with its first byte.
    to = !compressed ? range.to() : range.from() == 0 ? Long.MAX_VALUE : 0;
    long base = compressed ? 0 : Math.max(0, range.from() - 1);
    if (options.namesColumns() && base > 0) readColumns(file, options, declared);
    lines = open(file, base, options);
    try {
      // A line belongs to the part it begins in: unless the byte before is a line's end, the first bytes are another's.
      if (base < range.from()) lines.skipLine();
      else lines.skipMark();
      if (options.namesColumns() && base == 0 && lines.read()) columns(lines, options, declared);
    } catch (IOException | BadRecord | RuntimeException e) {
      lines.close();
      throw e;
    }
  }

  private static LineReader open(DataFile file, long base, FolderOptions options) throws IOException {
    InputStream in = file.open(base);
    try {
      boolean compressed = FolderOptions.isCompressed(file.file.path());
      return new LineReader(compressed ? Compressions.open(file.file.path(), in) : in, base, options.maxRecord());
    } catch (IOException | RuntimeException e) {
      in.close();
      throw e;
    }
  }

  /** Reads the first line of a file whose part begins behind it. */
  private void readColumns(DataFile file, FolderOptions options, StructType declared) throws IOException, BadRecord {
    LineReader first = open(file, 0, options);
    try {
      first.skipMark();
      if (first.read()) columns(first, options, declared);
    } finally {
      first.close();
    }
  }

  private void columns(LineReader first, FolderOptions options, StructType declared) throws BadRecord {
    if (first.kept < first.length) throw new BadRecord(Reason.BAD_FILE, "its first line, which names the columns, is too long");
    byte[] line = Arrays.copyOfRange(first.bytes, first.start, first.start + first.kept);
    List<String> names = CsvColumns.parse(line, options.csv());
    CsvColumns.check(names, declared);
    if (!names.equals(Arrays.asList(declared.fieldNames()))) form.columns(line);
  }

  @Override public byte[] next() throws IOException {
    while (lines.next() < to && lines.read()) {
      if (!blanks && lines.isBlank()) continue;
      byte[] record = form.make(lines.place, lines.length, lines.kept);
      System.arraycopy(lines.bytes, lines.start, record, record.length - lines.kept, lines.kept);
      return record;
    }
    return null;
  }

  @Override public long place() {
    return lines.next();
  }

  @Override public void close() throws IOException {
    lines.close();
  }
}
