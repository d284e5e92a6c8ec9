package io.headgate.kernel.windows;

import io.headgate.kernel.rows.SegmentedRow;
import io.headgate.kernel.time.BucketTimer;
import java.util.List;

/**
 * One window of one key: what it has found, and what it has told.
 *
 * <p>What aggregates have found is left as bytes until it is asked for: most calls concern one window of several. One object
 * serves many windows in turn.
 */
final class OpenWindow {
  static final long NEVER = BucketTimer.NEVER;

  private static final int FINISHED = 1;
  private static final int FRESH = 2;
  private static final int DUE = 4;

  private final Accumulator[] accumulators;
  private final StateReader reader = new StateReader();
  /** Where the aggregates' bytes lie; null where they have been read, or the window is new. */
  private byte[] packed;
  private int start;
  private int length;

  /** In ms of event time; the end is the first moment behind it. */
  long from;
  long end;
  long count;
  /** The moment of event time at which a row is due before the end; {@link #NEVER} for none. */
  long due;
  /** When on the clock it told something for the last time, or began. */
  long told;
  /** Whether its final row has been written. */
  boolean finished;
  /** Whether there are events that no row has told of. */
  boolean fresh;

  // What follows concerns one call alone.

  /** Whether the call has brought events. */
  boolean touched;
  /** Whether one of them is on time whatever the watermark says. */
  boolean punctual;
  /** How many events there were before the newest; of several windows that it joined, in the largest. */
  long before;

  OpenWindow(List<Aggregate> aggregates) {
    accumulators = aggregates.stream().map(Aggregate::open).toArray(Accumulator[]::new);
  }

  void begin(long from, long end, long now) {
    this.from = from;
    this.end = end;
    count = 0;
    due = NEVER;
    told = now;
    finished = false;
    fresh = false;
    touched = false;
    punctual = false;
    before = 0;
    packed = null;
    for (Accumulator each : accumulators) each.clear();
  }

  void add(SegmentedRow row, byte[] envelope, boolean onTime) {
    count++;
    fresh = true;
    touched = true;
    punctual |= onTime;
    unpack();
    for (Accumulator each : accumulators) each.add(row, envelope);
  }

  /** Takes over the events of a window that this one has grown into. */
  void merge(OpenWindow other) {
    unpack();
    other.unpack();
    for (int i = 0; i < accumulators.length; i++) accumulators[i].merge(other.accumulators[i]);
    count += other.count;
    before = Math.max(before, other.before);
    from = Math.min(from, other.from);
    end = Math.max(end, other.end);
    due = Math.min(due, other.due);
    told = Math.min(told, other.told);
    fresh |= other.fresh;
    touched |= other.touched;
    punctual |= other.punctual;
  }

  Object result(int aggregate) {
    unpack();
    return accumulators[aggregate].result();
  }

  private void unpack() {
    if (packed == null) return;
    reader.point(packed, start);
    for (Accumulator each : accumulators) each.read(reader);
    packed = null;
  }

  void write(StateWriter out) {
    out.putByte((finished ? FINISHED : 0) | (fresh ? FRESH : 0) | (due == NEVER ? 0 : DUE));
    out.putLong(from);
    out.putLong(end);
    out.putLong(count);
    out.putLong(told);
    if (due != NEVER) out.putLong(due);
    int place = out.position();
    out.putInt(length);
    if (packed != null) {
      out.putRaw(packed, start, length);
      return;
    }
    for (Accumulator each : accumulators) each.write(out);
    out.setInt(place, out.position() - place - Integer.BYTES);
  }

  /** @param bytes what the reader is pointed to */
  void read(StateReader in, byte[] bytes) {
    byte flags = in.getByte();
    finished = (flags & FINISHED) != 0;
    fresh = (flags & FRESH) != 0;
    from = in.getLong();
    end = in.getLong();
    count = in.getLong();
    told = in.getLong();
    due = (flags & DUE) != 0 ? in.getLong() : NEVER;
    length = in.getInt();
    packed = bytes;
    start = in.position();
    in.skip(length);
    touched = false;
    punctual = false;
    before = count;
  }
}
