package io.headgate.kernel.windows;

import io.headgate.kernel.rows.SegmentedRow;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;

/** The least or the greatest value of a column. */
final class Extreme implements Accumulator {
  private final Column column;
  private final boolean greatest;
  private final Value value;
  private boolean any;

  Extreme(Column column, boolean greatest) {
    this.column = column;
    this.greatest = greatest;
    value = Value.of(column.type());
  }

  @Override public void clear() {
    any = false;
  }

  @Override public void add(SegmentedRow row, byte[] envelope) {
    InternalRow at = column.holder(row);
    if (at != null) add(at, column.ordinal());
  }

  private void add(InternalRow at, int i) {
    if (any) {
      int by = value.compare(at, i);
      if (greatest ? by <= 0 : by >= 0) return;
    }
    value.take(at, i);
    any = true;
  }

  @Override public void merge(Accumulator other) {
    var extreme = (Extreme) other;
    if (extreme.any) add(new GenericInternalRow(new Object[] {extreme.value.get()}), 0);
  }

  @Override public void write(StateWriter out) {
    out.putByte(any ? 1 : 0);
    if (any) value.write(out);
  }

  @Override public void read(StateReader in) {
    any = in.getByte() != 0;
    if (any) value.read(in);
  }

  @Override public Object result() {
    return any ? value.get() : null;
  }
}
