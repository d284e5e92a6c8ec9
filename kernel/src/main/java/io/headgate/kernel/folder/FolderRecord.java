package io.headgate.kernel.folder;

import io.headgate.kernel.json.BadRecord.Reason;
import io.headgate.kernel.rows.RawHeaders;
import io.headgate.kernel.rows.RawRecord;
import java.nio.charset.StandardCharsets;

/**
 * The records of one file in the form of all connectors. The partition is the file's number; a header has its path, and
 * another one the first line of a CSV file that has its own columns.
 *
 * <p>What could not be read is a record, too, whose key is the reason's name and whose value says why.
 */
final class FolderRecord {
  private static final byte[] PATH = "path".getBytes(StandardCharsets.UTF_8);
  private static final byte[] COLUMNS = "columns".getBytes(StandardCharsets.UTF_8);
  /** A place in the order of rows: the number of the file, and so many bits for the row. */
  private static final int ROW_BITS = 40;

  private final byte[] topic;
  private final byte[] path;
  private final NumberedFile file;
  private final int lane;
  /** Null where the columns are those of the format. */
  private byte[] columns;

  FolderRecord(String topic, NumberedFile file, int lane) {
    this.topic = topic.getBytes(StandardCharsets.UTF_8);
    this.path = file.path().getBytes(StandardCharsets.UTF_8);
    this.file = file;
    this.lane = lane;
  }

  /** Gives the records that follow the line that names their columns. */
  void columns(byte[] line) {
    columns = line;
  }

  /**
   * Returns a record with room for its value at the end.
   *
   * @param offset the place in the file: a byte of a line, or the number of a row
   * @param size the value's full length; {@code kept} what of it there is room for
   */
  byte[] make(long offset, long size, int kept) {
    return make(offset, size, RawRecord.NONE, kept);
  }

  private byte[] make(long offset, long size, int key, int kept) {
    byte[] out = RawRecord.make(
        topic, (int) file.number(), offset, file.modified(), RawRecord.NO_TIME, lane, (file.number() << ROW_BITS) + offset, size,
        key, RawHeaders.size(PATH, path) + (columns == null ? 0 : RawHeaders.size(COLUMNS, columns)), kept);
    int next = RawHeaders.put(out, RawRecord.headersStart(out), PATH, path);
    if (columns != null) RawHeaders.put(out, next, COLUMNS, columns);
    return out;
  }

  /** Returns a record of something that could not be read. */
  byte[] refused(long offset, Reason reason, String why) {
    byte[] name = reason.name().getBytes(StandardCharsets.UTF_8);
    byte[] text = why.getBytes(StandardCharsets.UTF_8);
    byte[] out = make(offset, 0, name.length, text.length);
    System.arraycopy(name, 0, out, RawRecord.keyStart(out), name.length);
    System.arraycopy(text, 0, out, out.length - text.length, text.length);
    return out;
  }

  /** Returns whether a record of a folder is one that could not be read. */
  static boolean isRefused(byte[] record) {
    return RawRecord.keyLength(record) != RawRecord.NONE;
  }

  static Reason reason(byte[] record) {
    return Reason.valueOf(new String(record, RawRecord.keyStart(record), RawRecord.keyLength(record), StandardCharsets.UTF_8));
  }

  /** Returns where the path begins in a record's headers. */
  static int pathStart(byte[] record) {
    return RawRecord.headersStart(record) + 8 + PATH.length;
  }

  static int pathLength(byte[] record) {
    return RawHeaders.length(record, pathStart(record) - 4);
  }

  /** Returns where the line with the columns begins. */
  static int columnsStart(byte[] record) {
    return pathStart(record) + pathLength(record) + 8 + COLUMNS.length;
  }

  /** Returns the length of the line with the columns; less than 0 where there is none. */
  static int columnsLength(byte[] record) {
    int end = RawRecord.headersStart(record) + RawRecord.headersLength(record);
    return end - columnsStart(record);
  }
}
