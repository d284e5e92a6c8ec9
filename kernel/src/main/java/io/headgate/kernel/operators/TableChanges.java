package io.headgate.kernel.operators;

import io.headgate.kernel.rows.Envelope;
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
      if (held != null && !TableRow.replaces(lane, sequence, timestamp, held)) continue;
      boolean deleted = Envelope.kind(change) == Envelope.TOMBSTONE;
      held = deleted
          ? TableRow.of(history.current(), true, lane, sequence, timestamp, null, 0, 0)
          : TableRow.of(history.current(), false, lane, sequence, timestamp, change,
              Envelope.start(change, 0), Envelope.length(change, 0));
    }
    return held;
  }

  /** Returns the end of a row by a tombstone without a version: it takes the version of what it ends. */
  private byte[] end(byte[] held, long timestamp) {
    boolean versioned = held != null && TableRow.lane(held) == DecodeRecords.COLUMN_LANE;
    long version = versioned ? TableRow.sequence(held) : Long.MIN_VALUE;
    return TableRow.of(history.current(), true, DecodeRecords.COLUMN_LANE, version, timestamp, null, 0, 0);
  }
}
