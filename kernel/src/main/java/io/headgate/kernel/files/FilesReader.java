package io.headgate.kernel.files;

import io.headgate.kernel.rows.RawRecord;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;

/**
 * Reads the lines that begin in a split; memory is bounded by the largest record taken, whatever a line's length.
 *
 * <p>Of a line above {@code maxRecord} only the first bytes are kept, and its full length is told.
 */
final class FilesReader implements PartitionReader<InternalRow> {
  private static final int BUFFER = 256 * 1024;

  private final FilesSplit split;
  private final byte[] topic;
  private final ByteBuffer buffer = ByteBuffer.allocate(BUFFER);
  private final byte[] bytes = buffer.array();
  private int next;
  private FilesSplit.Range range;
  private FileChannel channel;
  /** Where in the file bytes[0] lies, which part of the buffer is not yet read, and where its data end. */
  private long base;
  private int at;
  private int limit;
  private byte[] joined = new byte[0];
  private final GenericInternalRow reused = new GenericInternalRow(new Object[1]);
  private InternalRow row;

  FilesReader(InputPartition split) {
    this.split = (FilesSplit) split;
    topic = this.split.topic().getBytes(StandardCharsets.UTF_8);
  }

  @Override public boolean next() throws IOException {
    for (;;) {
      if (channel == null && !open()) return false;
      long lineStart = base + at;
      if (lineStart >= range.to() || !readLine(lineStart)) {
        close();
        continue;
      }
      if (row != null) return true;
    }
  }

  private boolean open() throws IOException {
    if (next >= split.ranges().size()) return false;
    range = split.ranges().get(next++);
    try {
      channel = FileChannel.open(Path.of(range.path()), StandardOpenOption.READ);
    } catch (NoSuchFileException e) {
      throw new IOException("DATA_LOST: file " + range.path() + " of an embedded topic was deleted before it was read", e);
    }
    if (channel.size() < range.size())
      throw new IOException("DATA_LOST: file " + range.path() + " of an embedded topic has " + channel.size()
          + " bytes, and had " + range.size() + " when it was numbered: files must be published whole, by renaming");
    // A line belongs to the range it begins in: unless the byte before is a line's end, the first bytes are another's.
    base = Math.max(0, range.from() - 1);
    at = 0;
    limit = 0;
    if (range.from() > 0) {
      channel.position(base);
      skipLine();
    }
    return true;
  }

  private boolean fill() throws IOException {
    base += limit;
    at = 0;
    buffer.clear();
    long left = range.size() - base;
    if (left < BUFFER) buffer.limit((int) Math.max(0, left));
    limit = Math.max(0, channel.read(buffer));
    return limit > 0;
  }

  private int newline() {
    for (int i = at; i < limit; i++) if (bytes[i] == '\n') return i;
    return -1;
  }

  private void skipLine() throws IOException {
    for (;;) {
      if (at >= limit && !fill()) return;
      int end = newline();
      if (end >= 0) {
        at = end + 1;
        return;
      }
      at = limit;
    }
  }

  /** Reads one line into {@code row}, null for a blank one; returns false at the file's end. */
  private boolean readLine(long lineStart) throws IOException {
    if (at >= limit && !fill()) return false;
    int end = newline();
    if (end >= 0) {
      row = row(bytes, at, end - at, end - at, lineStart);
      at = end + 1;
      return true;
    }
    int kept = 0;
    long length = 0;
    boolean more = true;
    while (more) {
      int stop = end >= 0 ? end : limit;
      int part = stop - at;
      int room = (int) Math.min(part, Math.max(RawRecord.KEPT, split.maxRecord()) - kept);
      if (room > 0) {
        if (joined.length < kept + room) joined = Arrays.copyOf(joined, Math.max(kept + room, joined.length * 2));
        System.arraycopy(bytes, at, joined, kept, room);
        kept += room;
      }
      length += part;
      if (end >= 0) {
        at = end + 1;
        more = false;
      } else {
        at = limit;
        more = fill();
        end = more ? newline() : -1;
      }
    }
    row = row(joined, 0, length > split.maxRecord() ? Math.min(kept, RawRecord.KEPT) : kept, length, lineStart);
    return true;
  }

  private InternalRow row(byte[] from, int start, int kept, long length, long lineStart) {
    if (kept == length && isBlank(from, start, kept)) return null;
    byte[] record = RawRecord.make(
        topic, range.number(), lineStart, range.seen(), RawRecord.NO_TIME, split.lane(), range.start() + lineStart, length,
        RawRecord.NONE, RawRecord.NONE, kept);
    System.arraycopy(from, start, record, record.length - kept, kept);
    reused.update(0, record);
    return reused;
  }

  private static boolean isBlank(byte[] b, int start, int length) {
    for (int i = start; i < start + length; i++) if (b[i] != ' ' && b[i] != '\t' && b[i] != '\r') return false;
    return true;
  }

  @Override public InternalRow get() {
    return row;
  }

  @Override public void close() throws IOException {
    if (channel != null) channel.close();
    channel = null;
  }
}
