package io.headgate.kernel.windows;

import io.headgate.kernel.rows.SegmentedRow;
import java.util.LinkedHashSet;
import org.apache.spark.sql.catalyst.InternalRow;

/** How many different values a column has; each of them is kept. */
final class Distinct implements Accumulator {
  private final Column column;
  private final Value value;
  private final LinkedHashSet<Object> seen = new LinkedHashSet<>();

  Distinct(Column column) {
    this.column = column;
    value = Value.of(column.type());
  }

  @Override public void clear() {
    seen.clear();
  }

  @Override public void add(SegmentedRow row, byte[] envelope) {
    InternalRow at = column.holder(row);
    if (at == null) return;
    value.take(at, column.ordinal());
    seen.add(value.get());
  }

  @Override public void merge(Accumulator other) {
    seen.addAll(((Distinct) other).seen);
  }

  @Override public void write(StateWriter out) {
    out.putInt(seen.size());
    for (Object each : seen) {
      value.set(each);
      value.write(out);
    }
  }

  @Override public void read(StateReader in) {
    seen.clear();
    for (int left = in.getInt(); left > 0; left--) {
      value.read(in);
      seen.add(value.get());
    }
  }

  @Override public Object result() {
    return (long) seen.size();
  }
}
