package io.headgate.kernel.windows;

import io.headgate.kernel.rows.SegmentedRow;
import org.apache.spark.sql.catalyst.InternalRow;

/** The sum of numbers as floating point, or their mean. */
final class RealSum implements Accumulator {
  private final Column column;
  private final Numbers.Real form;
  private final boolean mean;
  private long count;
  private double sum;

  RealSum(Column column, boolean mean) {
    this.column = column;
    this.mean = mean;
    form = Numbers.real(column.type());
  }

  @Override public void clear() {
    count = 0;
    sum = 0;
  }

  @Override public void add(SegmentedRow row, byte[] envelope) {
    InternalRow at = column.holder(row);
    if (at == null) return;
    count++;
    sum += form.get(at, column.ordinal());
  }

  @Override public void merge(Accumulator other) {
    count += ((RealSum) other).count;
    sum += ((RealSum) other).sum;
  }

  @Override public void write(StateWriter out) {
    out.putLong(count);
    out.putDouble(sum);
  }

  @Override public void read(StateReader in) {
    count = in.getLong();
    sum = in.getDouble();
  }

  @Override public Object result() {
    if (count == 0) return null;
    return mean ? sum / count : sum;
  }
}
