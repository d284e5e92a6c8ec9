package io.headgate.kernel.windows;

import io.headgate.kernel.rows.SegmentedRow;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * The sum of whole numbers; null where it does not fit 64 bits.
 *
 * <p>It is kept in 128 bits: whether it fits in the end does not depend on the order of the events.
 */
final class WholeSum implements Accumulator {
  private final Column column;
  private final Numbers.Whole form;
  private boolean any;
  private long high;
  private long low;

  WholeSum(Column column) {
    this.column = column;
    form = Numbers.whole(column.type());
  }

  @Override public void clear() {
    any = false;
    high = 0;
    low = 0;
  }

  @Override public void add(SegmentedRow row, byte[] envelope) {
    InternalRow at = column.holder(row);
    if (at == null) return;
    long value = form.get(at, column.ordinal());
    any = true;
    add(value >> 63, value);
  }

  private void add(long otherHigh, long otherLow) {
    low += otherLow;
    high += otherHigh + (Long.compareUnsigned(low, otherLow) < 0 ? 1 : 0);
  }

  @Override public void merge(Accumulator other) {
    var sum = (WholeSum) other;
    any |= sum.any;
    add(sum.high, sum.low);
  }

  @Override public void write(StateWriter out) {
    out.putByte(any ? 1 : 0);
    out.putLong(high);
    out.putLong(low);
  }

  @Override public void read(StateReader in) {
    any = in.getByte() != 0;
    high = in.getLong();
    low = in.getLong();
  }

  @Override public Object result() {
    return any && high == low >> 63 ? low : null;
  }
}
