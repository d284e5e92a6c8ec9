package io.headgate.kernel.rolling;

import java.io.Closeable;
import java.io.IOException;
import java.nio.file.Path;

/** Writes rows to one file of this machine, in the format of a sheet; the same rows give the same bytes. */
interface VisibleFile extends Closeable {
  void row(byte[] bytes, int start, int length) throws IOException;

  static VisibleFile open(Sheet sheet, Path file) throws IOException {
    return switch (sheet.type()) {
      case "parquet" -> new ParquetFile(sheet, file);
      case "orc" -> new OrcFile(sheet, file);
      case "avro" -> new AvroFile(sheet, file);
      default -> new LinesFile(sheet, file);
    };
  }
}
