package io.headgate.kernel.rolling;

import java.io.BufferedOutputStream;
import java.io.Closeable;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;

/**
 * Rows of many groups in a file of this machine, to be read group by group: so one visible file is open at a time, however many
 * partitions there are.
 *
 * <p>In memory there are 12 bytes for each run of rows of the same group.
 */
final class Spool implements Closeable {
  private static final int BUFFER = 256 * 1024;
  private static final int NONE = -1;

  private final Path file;
  private final OutputStream out;
  private final ByteBuffer head = ByteBuffer.allocate(4);
  private long end;
  private long[] starts = new long[64];
  /** The next run of the same group. */
  private int[] next = new int[64];
  private int runs;
  private int last = NONE;
  /** The first and last run of each group. */
  private int[] first = new int[0];
  private int[] latest = new int[0];
  private FileChannel channel;

  Spool(Path file) throws IOException {
    this.file = file;
    out = new BufferedOutputStream(Files.newOutputStream(file), BUFFER);
  }

  void add(int group, byte[] bytes, int length) throws IOException {
    if (group != last) begin(group);
    out.write(head.putInt(0, length).array());
    out.write(bytes, 0, length);
    end += 4 + length;
  }

  private void begin(int group) {
    if (runs == starts.length) {
      starts = Arrays.copyOf(starts, runs * 2);
      next = Arrays.copyOf(next, runs * 2);
    }
    if (group >= first.length) {
      int had = first.length;
      first = Arrays.copyOf(first, Math.max(group + 1, had * 2));
      latest = Arrays.copyOf(latest, first.length);
      Arrays.fill(first, had, first.length, NONE);
    }
    starts[runs] = end;
    next[runs] = NONE;
    if (first[group] == NONE) first[group] = runs;
    else next[latest[group]] = runs;
    latest[group] = runs++;
    last = group;
  }

  /** Takes a row. */
  interface Rows {
    void row(byte[] bytes, int start, int length) throws IOException;
  }

  /** Hands out the rows of a group in the order in which they came; nothing is added from then on. */
  void read(int group, Rows to) throws IOException {
    if (channel == null) {
      out.close();
      channel = FileChannel.open(file, StandardOpenOption.READ);
    }
    if (group >= first.length) return;
    ByteBuffer buffer = ByteBuffer.allocate(BUFFER);
    for (int run = first[group]; run != NONE; run = next[run]) {
      long stop = run + 1 < runs ? starts[run + 1] : end;
      for (long at = starts[run]; at < stop;) {
        buffer = filled(buffer, at, stop);
        // Whole rows alone: one that does not fit is at the start of the next piece.
        while (buffer.remaining() >= 4 && buffer.remaining() - 4 >= buffer.getInt(buffer.position())) {
          int length = buffer.getInt();
          to.row(buffer.array(), buffer.position(), length);
          buffer.position(buffer.position() + length);
        }
        if (buffer.position() == 0) buffer = ByteBuffer.allocate(Math.addExact(buffer.getInt(0), 4));
        at += buffer.position();
      }
    }
  }

  /** Reads what fits; the end of a run is the end of a row. */
  private ByteBuffer filled(ByteBuffer buffer, long at, long stop) throws IOException {
    buffer.clear();
    buffer.limit((int) Math.min(buffer.capacity(), stop - at));
    while (buffer.hasRemaining()) {
      if (channel.read(buffer, at + buffer.position()) < 0) throw new IOException("file " + file + " ends in the middle of its rows");
    }
    return buffer.flip();
  }

  @Override public void close() throws IOException {
    try {
      out.close();
      if (channel != null) channel.close();
    } finally {
      Files.deleteIfExists(file);
    }
  }
}
