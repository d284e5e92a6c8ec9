package io.headgate.kernel.formats.avro;

import java.math.BigInteger;
import java.util.Arrays;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.types.DecimalType;

/**
 * Writes decimals as bytes.
 *
 * @param size how many bytes each value has; -1 for as many as it needs
 * @param scale the scale that it is written with, which is not below the column's
 */
record DecimalWriter(int size, int scale, DecimalType type) implements ValueWriter {
  /** Returns the writer, or null where some value of the column would lose digits. */
  static ValueWriter find(Schema schema, DecimalType type) {
    if (!(schema.getLogicalType() instanceof LogicalTypes.Decimal d)) return null;
    boolean fits = d.getScale() >= type.scale() && d.getPrecision() - d.getScale() >= type.precision() - type.scale();
    int size = schema.getType() == Schema.Type.FIXED ? schema.getFixedSize() : -1;
    return fits ? new DecimalWriter(size, d.getScale(), type) : null;
  }

  @Override public void write(AvroOutput out, SpecializedGetters row, int i) {
    BigInteger digits = row.getDecimal(i, type.precision(), type.scale()).toJavaBigDecimal().setScale(scale).unscaledValue();
    byte[] bytes = digits.toByteArray();
    if (size < 0) {
      out.addBytes(bytes);
      return;
    }
    byte[] filled = new byte[size];
    Arrays.fill(filled, (byte) (digits.signum() < 0 ? -1 : 0));
    System.arraycopy(bytes, 0, filled, size - bytes.length, bytes.length);
    out.addRaw(filled);
  }
}
