package io.headgate.kernel.windows;

import io.headgate.kernel.rows.SegmentedRow;

/**
 * What one aggregate has found in the events of one window so far.
 *
 * <p>Whatever it holds it can write and read again, and two that took different events can be put together. One is used for
 * many windows in turn. Nulls are left out.
 */
interface Accumulator {
  /** Begins anew. */
  void clear();

  /** @param envelope the event's, for when it happened and where it stands */
  void add(SegmentedRow row, byte[] envelope);

  /** Takes what another of the same aggregate has found. */
  void merge(Accumulator other);

  void write(StateWriter out);

  void read(StateReader in);

  /** Returns the value as Spark's rows hold it; null for none. */
  Object result();
}
