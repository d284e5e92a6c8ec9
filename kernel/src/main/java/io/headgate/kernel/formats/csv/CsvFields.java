package io.headgate.kernel.formats.csv;

import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import java.util.Arrays;
import java.util.List;

/**
 * The fields of one record: where each lies in its bytes, and whether it is in quotes.
 *
 * <p>Mutable and reused from record to record. One serves one thread.
 */
final class CsvFields {
  private final byte delimiter;
  private final byte quote;
  private final List<String> names;
  private final int[] starts;
  private final int[] lengths;
  private final boolean[] quoted;
  /** Whether a field has a quote in it, which is written twice. */
  private final boolean[] doubled;
  private byte[] from;
  private byte[] scratch = new byte[0];

  CsvFields(CsvShape shape, List<String> names) {
    delimiter = shape.delimiter();
    quote = shape.quote();
    this.names = names;
    starts = new int[names.size()];
    lengths = new int[starts.length];
    quoted = new boolean[starts.length];
    doubled = new boolean[starts.length];
  }

  /** Finds the fields of a record, which has as many as there are names; a line's end behind it does not belong to it. */
  void split(byte[] record, int start, int length) throws BadRecord {
    from = record;
    int end = start + length;
    if (end > start && record[end - 1] == '\n') end--;
    if (end > start && record[end - 1] == '\r') end--;
    int at = start;
    int count = 0;
    while (true) {
      at = at < end && record[at] == quote ? quoted(count, at + 1, end) : plain(count, at, end);
      count++;
      if (at == end) break;
      at++;
    }
    if (count < names.size())
      throw bad("expected " + names.size() + " fields, found " + count + ": there is none for column '" + names.get(count) + "'");
    if (count > names.size())
      throw bad("expected " + names.size() + " fields, found " + count + ": the last should be that of column '"
          + names.get(names.size() - 1) + "'");
  }

  /** Takes a field without quotes; returns where it ends. */
  private int plain(int i, int start, int end) throws BadRecord {
    int at = start;
    for (; at < end && from[at] != delimiter; at++) {
      byte c = from[at];
      if (c == quote) throw bad(named(i) + ": a quote in a field that does not begin with one");
      if (c == '\n' || c == '\r') throw bad(named(i) + ": an end of a line outside of quotes");
    }
    put(i, start, at, false, false);
    return at;
  }

  /** Takes a field in quotes; returns where it ends, behind the second of them. */
  private int quoted(int i, int start, int end) throws BadRecord {
    boolean twice = false;
    int at = start;
    for (; at < end; at++) {
      if (from[at] != quote) continue;
      if (at + 1 == end || from[at + 1] != quote) break;
      twice = true;
      at++;
    }
    if (at >= end) throw bad(named(i) + ": its quote is not closed");
    put(i, start, at, true, twice);
    if (at + 1 < end && from[at + 1] != delimiter) throw bad(named(i) + ": text behind its closing quote");
    return at + 1;
  }

  private void put(int i, int start, int end, boolean inQuotes, boolean twice) {
    if (i >= starts.length) return;
    starts[i] = start;
    lengths[i] = end - start;
    quoted[i] = inQuotes;
    doubled[i] = twice;
  }

  private String named(int i) {
    return i < names.size() ? "field '" + names.get(i) + "'" : "field " + (i + 1);
  }

  private static BadRecord bad(String why) {
    return new BadRecord(Reason.BAD_CSV, why);
  }

  boolean isQuoted(int i) {
    return quoted[i];
  }

  boolean equals(int i, byte[] text) {
    return lengths[i] == text.length && Arrays.equals(from, starts[i], starts[i] + lengths[i], text, 0, text.length);
  }

  /** Points at the bytes of a field's value: {@link #bytes}, from {@link #start} on, {@link #length} of them. */
  void open(int i) {
    start = starts[i];
    length = lengths[i];
    bytes = from;
    if (!doubled[i]) return;
    if (scratch.length < length) scratch = new byte[Math.max(length, 2 * scratch.length)];
    int to = 0;
    for (int at = start; at < start + length; at++) {
      scratch[to++] = from[at];
      if (from[at] == quote) at++;
    }
    bytes = scratch;
    start = 0;
    length = to;
  }

  byte[] bytes;
  int start;
  int length;
}
