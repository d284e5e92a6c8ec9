package io.headgate.kernel.operators;

import io.headgate.kernel.rows.Envelope;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/** Decides what state holds of a table's key after changes of it, whatever order they come in. */
public final class TableChanges {
  /**
   * Changes that a column orders stand by their place in the topic: of equal versions the last one there counts, and a
   * tombstone without a version ends what stood before it. The others stand by lane and sequence.
   */
  private static final Comparator<byte[]> BY_PLACE =
      Comparator.<byte[]>comparingInt(c -> Math.max(Envelope.lane(c), DecodeRecords.COLUMN_LANE))
          .thenComparingLong(c -> Envelope.lane(c) < 0 ? 0 : Envelope.sequence(c))
          .thenComparingInt(Envelope::partition).thenComparingLong(Envelope::offset);

  private final SchemaHistory history;

  public TableChanges(SchemaHistory history) {
    this.history = history;
  }

  /**
   * Returns what state is to hold; null for none.
   *
   * @param changes of one key; they are put in order
   * @param before what state held
   */
  public byte[] apply(List<byte[]> changes, byte[] before) {
    // Rows come out of a shuffle in any order. Their places decide, so that a replay ends in the same state.
    if (changes.size() > 1) changes.sort(BY_PLACE);
    byte[] held = before;
    for (byte[] change : changes) {
      int lane = Envelope.lane(change);
      long sequence = Envelope.sequence(change);
      long timestamp = Envelope.timestamp(change);
      if (lane == DecodeRecords.UNVERSIONED_LANE) {
        held = end(held, timestamp);
        continue;
      }
      byte[] position = position(change);
      boolean deleted = Envelope.kind(change) == Envelope.TOMBSTONE;
      if (deleted && position == null && held != null && TableRow.echoes(held) > 0) {
        // The tombstone of a deletion that was too old says no more than the deletion did.
        held = TableRow.withEchoes(held, TableRow.echoes(held) - 1);
        continue;
      }
      if (held != null && !replaces(change, position, held)) {
        if (deleted && position != null) held = TableRow.withEchoes(held, TableRow.echoes(held) + 1);
        continue;
      }
      if (deleted && position == null && held != null) {
        // It takes the position of what it ends: a change that is older than that cannot bring the row back.
        position = TableRow.position(held);
      }
      var made = new TableRow.Change(deleted, lane, sequence, timestamp, position);
      held = deleted
          ? TableRow.of(history.current(), made, null, 0, 0)
          : TableRow.of(history.current(), made, change, Envelope.start(change, 0), Envelope.length(change, 0));
    }
    return held;
  }

  /** Returns whether a change is newer: by its position in the database's log if both have one there, or by its place. */
  private static boolean replaces(byte[] change, byte[] position, byte[] held) {
    byte[] known = position == null ? null : TableRow.position(held);
    return known != null && LogPosition.areComparable(position, known)
        ? LogPosition.compare(position, known) >= 0
        : TableRow.replaces(Envelope.lane(change), Envelope.sequence(change), Envelope.timestamp(change), held);
  }

  /** Returns the position of a change, which is the segment before its key; null without one. */
  private static byte[] position(byte[] change) {
    int place = Envelope.segments(change) - 2;
    if (place < (Envelope.kind(change) == Envelope.TOMBSTONE ? 0 : 1)) return null;
    int start = Envelope.start(change, place);
    return Arrays.copyOfRange(change, start, start + Envelope.length(change, place));
  }

  /** Returns the end of a row by a tombstone without a version: it takes the version of what it ends. */
  private byte[] end(byte[] held, long timestamp) {
    boolean versioned = held != null && TableRow.lane(held) == DecodeRecords.COLUMN_LANE;
    long version = versioned ? TableRow.sequence(held) : Long.MIN_VALUE;
    var made = new TableRow.Change(true, DecodeRecords.COLUMN_LANE, version, timestamp, null);
    return TableRow.of(history.current(), made, null, 0, 0);
  }
}
