package io.headgate.kernel.pulsar;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** Sorted rows in a temporary file, which lies in the run's scratch folder and is removed with it after a crash. */
final class SortedRun {
  private static final int BUFFER = 64 << 10;

  private final Path file;
  private final int rows;

  private SortedRun(Path file, int rows) {
    this.file = file;
    this.rows = rows;
  }

  static SortedRun write(List<OutputRow> rows) {
    Path file = null;
    try {
      file = Files.createTempFile("held-", ".rows");
      try (var out = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(file), BUFFER))) {
        for (OutputRow row : rows) row.write(out);
      }
      return new SortedRun(file, rows.size());
    } catch (IOException e) {
      if (file != null) new SortedRun(file, 0).delete();
      throw new UncheckedIOException(e);
    }
  }

  Reader read() {
    return new Reader();
  }

  void delete() {
    try {
      Files.deleteIfExists(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Reads the rows one by one. */
  final class Reader implements AutoCloseable {
    private final DataInputStream in;
    private int left = rows;
    /** Null behind the last row. */
    private OutputRow head;

    private Reader() {
      try {
        in = new DataInputStream(new BufferedInputStream(Files.newInputStream(file), BUFFER));
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
      advance();
    }

    OutputRow head() {
      return head;
    }

    void advance() {
      try {
        head = left-- > 0 ? OutputRow.read(in) : null;
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    @Override public void close() {
      try {
        in.close();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }
}
