package io.headgate.kernel.formats.avro;

import io.headgate.kernel.json.BadRecord;
import java.math.BigDecimal;
import java.math.BigInteger;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;

/**
 * Reads a decimal of any precision and scale; a value that the column cannot hold exactly is refused.
 *
 * @param size how many bytes each value has; -1 if a value says so itself
 * @param scale the scale that it is written with
 */
record DecimalReader(int size, int scale, DecimalType type, String field) implements ValueReader {
  /** Signs may fill further bytes; more than these would only take time. */
  private static final int MOST_BYTES = 1024;

  /** Returns the reader, or null for what is not a decimal. */
  static ValueReader find(Schema written, DecimalType type, String field) {
    if (!(written.getLogicalType() instanceof LogicalTypes.Decimal decimal)) return null;
    int size = written.getType() == Schema.Type.FIXED ? written.getFixedSize() : -1;
    return new DecimalReader(size, decimal.getScale(), type, field);
  }

  @Override public Object read(AvroInput in) throws BadRecord {
    int length = size < 0 ? in.readLength() : size;
    int begin = in.take(length);
    if (length == 0) throw in.bad("a decimal has no bytes");
    if (length > MOST_BYTES) throw NumberReaders.wrong(field, "a number that fits " + type.sql(), length + " bytes");
    var value = new BigDecimal(new BigInteger(in.bytes(), begin, length), scale);
    try {
      BigDecimal exact = value.setScale(type.scale());
      if (exact.precision() <= type.precision()) return Decimal.apply(exact, type.precision(), type.scale());
    } catch (ArithmeticException e) {
      // Digits would be lost: refused below.
    }
    String shown = value.precision() > 50 ? "one of " + value.precision() + " digits" : value.toPlainString();
    throw NumberReaders.wrong(field, "a number that fits " + type.sql(), shown);
  }
}
