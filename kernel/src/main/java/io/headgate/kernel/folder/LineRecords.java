package io.headgate.kernel.folder;

import java.io.IOException;
import java.io.InputStream;

/** The lines that begin in a part of a file. A blank line is a record of a text file alone. */
final class LineRecords implements FileRecords {
  private final FolderRecord form;
  private final long to;
  private final boolean blanks;
  private final LineReader lines;

  LineRecords(DataFile file, FolderSplit.Range range, FolderRecord form, FolderOptions options) throws IOException {
    this.form = form;
    blanks = options.format().equals("text");
    boolean compressed = FolderOptions.isCompressed(file.file.path());
    // A compressed file belongs to the part with its first byte.
    to = !compressed ? range.to() : range.from() == 0 ? Long.MAX_VALUE : 0;
    long base = compressed ? 0 : Math.max(0, range.from() - 1);
    InputStream in = file.open(base);
    try {
      lines = new LineReader(compressed ? Compressions.open(file.file.path(), in) : in, base, options.maxRecord());
      // A line belongs to the part it begins in: unless the byte before is a line's end, the first bytes are another's.
      if (base < range.from()) lines.skipLine();
      else lines.skipMark();
    } catch (IOException | RuntimeException e) {
      in.close();
      throw e;
    }
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
