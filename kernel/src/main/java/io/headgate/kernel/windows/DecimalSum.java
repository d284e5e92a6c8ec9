package io.headgate.kernel.windows;

import io.headgate.kernel.rows.SegmentedRow;
import java.math.BigDecimal;
import java.math.BigInteger;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;

/** The sum of decimals; null where it has more digits than the result's type. */
final class DecimalSum implements Accumulator {
  private final Column column;
  private final DecimalType from;
  private final DecimalType to;
  /** In units of the scale; null before the first value. */
  private BigInteger sum;

  DecimalSum(Column column, DecimalType to) {
    this.column = column;
    this.to = to;
    from = (DecimalType) column.type();
  }

  @Override public void clear() {
    sum = null;
  }

  @Override public void add(SegmentedRow row, byte[] envelope) {
    InternalRow at = column.holder(row);
    if (at == null) return;
    Decimal value = at.getDecimal(column.ordinal(), from.precision(), from.scale());
    add(value.toJavaBigDecimal().setScale(from.scale()).unscaledValue());
  }

  private void add(BigInteger more) {
    sum = sum == null ? more : sum.add(more);
  }

  @Override public void merge(Accumulator other) {
    BigInteger more = ((DecimalSum) other).sum;
    if (more != null) add(more);
  }

  @Override public void write(StateWriter out) {
    out.putByte(sum == null ? 0 : 1);
    if (sum != null) out.putBytes(sum.toByteArray());
  }

  @Override public void read(StateReader in) {
    sum = in.getByte() == 0 ? null : new BigInteger(in.getBytes());
  }

  @Override public Object result() {
    if (sum == null) return null;
    var value = new BigDecimal(sum, from.scale());
    return value.precision() > to.precision() ? null : Decimal.apply(value, to.precision(), to.scale());
  }
}
