package io.headgate.kernel.windows;

import io.headgate.kernel.rows.SegmentedRow;

/** How many events there are, or how many values of a column. */
final class Count implements Accumulator {
  private final Column column;
  private long count;

  /** @param column null to count events */
  Count(Column column) {
    this.column = column;
  }

  @Override public void clear() { count = 0; }

  @Override public void add(SegmentedRow row, byte[] envelope) {
    if (column == null || column.holder(row) != null) count++;
  }

  @Override public void merge(Accumulator other) { count += ((Count) other).count; }
  @Override public void write(StateWriter out) { out.putLong(count); }
  @Override public void read(StateReader in) { count = in.getLong(); }
  @Override public Object result() { return count; }
}
