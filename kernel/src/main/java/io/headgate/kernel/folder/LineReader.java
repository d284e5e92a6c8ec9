package io.headgate.kernel.folder;

import io.headgate.kernel.rows.RawRecord;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;

/**
 * Reads the lines of a file, one after the other; memory is bounded by the largest record taken, whatever a line's length.
 * A carriage return before the end of a line is no part of it, and neither is a byte order mark at the beginning of a file.
 */
final class LineReader {
  private static final int BUFFER = 256 * 1024;

  private final InputStream in;
  private final long maxRecord;
  private final byte[] buffer = new byte[BUFFER];
  /** The place of buffer[0], the next byte to take, and the end of what is there. */
  private long base;
  private int at;
  private int limit;
  private byte[] joined = new byte[0];

  /** The line: its first byte's place, where it lies, how much of it is kept, and its whole length. */
  long place;
  byte[] bytes;
  int start;
  int kept;
  long length;

  /** @param base the place of the stream's first byte */
  LineReader(InputStream in, long base, long maxRecord) {
    this.in = in;
    this.base = base;
    this.maxRecord = maxRecord;
  }

  /** Returns the place of the next line. */
  long next() {
    return base + at;
  }

  /** Skips the byte order mark. */
  void skipMark() throws IOException {
    while (limit < 3 && more()) continue;
    if (limit >= 3 && (buffer[0] & 0xff) == 0xef && (buffer[1] & 0xff) == 0xbb && (buffer[2] & 0xff) == 0xbf) at = 3;
  }

  private boolean more() throws IOException {
    int read = in.read(buffer, limit, BUFFER - limit);
    if (read > 0) limit += read;
    return read > 0;
  }

  private boolean fill() throws IOException {
    base += limit;
    at = 0;
    limit = 0;
    return more();
  }

  private int newline() {
    for (int i = at; i < limit; i++) if (buffer[i] == '\n') return i;
    return -1;
  }

  /** Skips to behind the next line's end. */
  void skipLine() throws IOException {
    while (at < limit || fill()) {
      int end = newline();
      at = end >= 0 ? end + 1 : limit;
      if (end >= 0) return;
    }
  }

  /** Reads a line; returns false at the end. */
  boolean read() throws IOException {
    if (at >= limit && !fill()) return false;
    place = base + at;
    int end = newline();
    if (end >= 0) take(end);
    else join();
    strip();
    return true;
  }

  private void take(int end) {
    bytes = buffer;
    start = at;
    length = end - at;
    kept = end - at;
    at = end + 1;
    cut();
  }

  private void join() throws IOException {
    int end = -1;
    kept = 0;
    length = 0;
    boolean more = true;
    while (more) {
      int stop = end >= 0 ? end : limit;
      keep(stop - at);
      if (end >= 0) {
        at = end + 1;
        more = false;
      } else {
        at = limit;
        more = fill();
        end = more ? newline() : -1;
      }
    }
    bytes = joined;
    start = 0;
    cut();
  }

  private void keep(int part) {
    int room = (int) Math.min(part, Math.max(RawRecord.KEPT, maxRecord) + 1 - kept);
    if (room > 0) {
      if (joined.length < kept + room) joined = Arrays.copyOf(joined, Math.max(kept + room, joined.length * 2));
      System.arraycopy(buffer, at, joined, kept, room);
      kept += room;
    }
    length += part;
  }

  private void cut() {
    if (length > maxRecord + 1) kept = Math.min(kept, RawRecord.KEPT);
  }

  private void strip() {
    if (kept == length && kept > 0 && bytes[start + kept - 1] == '\r') {
      kept--;
      length--;
    }
    if (length > maxRecord) kept = Math.min(kept, RawRecord.KEPT);
  }

  boolean isBlank() {
    if (kept < length) return false;
    for (int i = start; i < start + kept; i++) if (bytes[i] != ' ' && bytes[i] != '\t') return false;
    return true;
  }

  /** Closes the stream, whatever is left of it. */
  void close() throws IOException {
    try {
      in.close();
    } catch (EOFException e) {
      // All that counts was read.
    }
  }
}
