package io.headgate.kernel.windows;

import io.headgate.kernel.rows.SegmentedRow;
import org.apache.datasketches.hll.HllSketch;
import org.apache.datasketches.hll.Union;
import org.apache.spark.sql.catalyst.InternalRow;

/** About how many different values a column has: a sketch of a few KiB at most, whatever their number. */
final class ApproximateDistinct implements Accumulator {
  /** The logarithm of the number of registers; 12 gives an error of about 1.6 %. */
  private static final int REGISTERS = 12;

  private final Column column;
  private final Value value;
  private HllSketch sketch = new HllSketch(REGISTERS);

  ApproximateDistinct(Column column) {
    this.column = column;
    value = Value.of(column.type());
  }

  @Override public void clear() {
    if (!sketch.isEmpty()) sketch = new HllSketch(REGISTERS);
  }

  @Override public void add(SegmentedRow row, byte[] envelope) {
    InternalRow at = column.holder(row);
    if (at == null) return;
    value.take(at, column.ordinal());
    value.count(sketch);
  }

  @Override public void merge(Accumulator other) {
    var union = new Union(REGISTERS);
    union.update(sketch);
    union.update(((ApproximateDistinct) other).sketch);
    sketch = union.getResult(HllSketch.DEFAULT_HLL_TYPE);
  }

  @Override public void write(StateWriter out) {
    out.putBytes(sketch.toCompactByteArray());
  }

  @Override public void read(StateReader in) {
    sketch = HllSketch.heapify(in.getBytes());
  }

  @Override public Object result() {
    // The finer estimate depends on the order in which values came, which is another in a replay.
    return Math.round(sketch.getCompositeEstimate());
  }
}
