package io.headgate.kernel.windows;

import io.headgate.kernel.rows.SegmentedRow;
import java.util.ArrayList;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;

/** The first values of a column that came, up to a limit. */
final class Collect implements Accumulator {
  private final Column column;
  private final int limit;
  private final Value value;
  private final ArrayList<Object> kept = new ArrayList<>();

  Collect(Column column, int limit) {
    this.column = column;
    this.limit = limit;
    value = Value.kept(column.type());
  }

  @Override public void clear() {
    kept.clear();
  }

  @Override public void add(SegmentedRow row, byte[] envelope) {
    if (kept.size() >= limit) return;
    InternalRow at = column.holder(row);
    if (at == null) return;
    value.take(at, column.ordinal());
    kept.add(value.get());
  }

  @Override public void merge(Accumulator other) {
    for (Object each : ((Collect) other).kept) if (kept.size() < limit) kept.add(each);
  }

  @Override public void write(StateWriter out) {
    out.putInt(kept.size());
    for (Object each : kept) {
      value.set(each);
      value.write(out);
    }
  }

  @Override public void read(StateReader in) {
    kept.clear();
    for (int left = in.getInt(); left > 0; left--) {
      value.read(in);
      kept.add(value.get());
    }
  }

  @Override public Object result() {
    return new GenericArrayData(kept.toArray());
  }
}
