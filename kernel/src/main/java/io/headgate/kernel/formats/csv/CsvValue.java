package io.headgate.kernel.formats.csv;

import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import io.headgate.kernel.json.ValueText;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.sql.types.*;

/** Reads fields of one type into a row; a text that is not exactly of the type is a {@link BadRecord}. */
final class CsvValue implements Serializable {
  private enum Kind { TEXT, LONG, INT, SHORT, BYTE, DOUBLE, FLOAT, BOOLEAN, BINARY, DATE, TIMESTAMP, DECIMAL }

  /** A message shows so much of a value. */
  private static final int SHOWN = 40;

  private final Kind kind;
  /** Null for all but decimals. */
  private final DecimalType decimal;

  CsvValue(DataType type) {
    kind = kind(type);
    decimal = type instanceof DecimalType d ? d : null;
  }

  private static Kind kind(DataType type) {
    if (type instanceof StringType) return Kind.TEXT;
    if (type instanceof LongType) return Kind.LONG;
    if (type instanceof IntegerType) return Kind.INT;
    if (type instanceof ShortType) return Kind.SHORT;
    if (type instanceof ByteType) return Kind.BYTE;
    if (type instanceof DoubleType) return Kind.DOUBLE;
    if (type instanceof FloatType) return Kind.FLOAT;
    if (type instanceof BooleanType) return Kind.BOOLEAN;
    if (type instanceof BinaryType) return Kind.BINARY;
    if (type instanceof DateType) return Kind.DATE;
    if (type instanceof TimestampType) return Kind.TIMESTAMP;
    if (type instanceof DecimalType) return Kind.DECIMAL;
    throw new IllegalArgumentException("no CSV form for type " + type.sql());
  }

  /** Writes the value of a field that is open. */
  void write(CsvFields field, String name, UnsafeRowWriter row, int to) throws BadRecord {
    try {
      // A switch, since calls of so many lambdas are slow.
      switch (kind) {
        case TEXT -> row.write(to, field.bytes, field.start, field.length);
        case LONG -> row.write(to, CsvNumber.integer(field, Long.MIN_VALUE, Long.MAX_VALUE, "an integer"));
        case INT -> row.write(to, (int) CsvNumber.integer(field, Integer.MIN_VALUE, Integer.MAX_VALUE, "a 32-bit integer"));
        case SHORT -> row.write(to, (short) CsvNumber.integer(field, Short.MIN_VALUE, Short.MAX_VALUE, "a 16-bit integer"));
        case BYTE -> row.write(to, (byte) CsvNumber.integer(field, Byte.MIN_VALUE, Byte.MAX_VALUE, "an 8-bit integer"));
        case DOUBLE -> row.write(to, CsvNumber.ofDouble(field));
        case FLOAT -> row.write(to, CsvNumber.ofFloat(field));
        case BOOLEAN -> row.write(to, bool(text(field)));
        case BINARY -> row.write(to, ValueText.readBinary(text(field)));
        case DATE -> row.write(to, ValueText.readDate(text(field)));
        case TIMESTAMP -> row.write(to, ValueText.readTimestamp(text(field)));
        case DECIMAL -> row.write(to, ValueText.readDecimal(text(field), decimal), decimal.precision(), decimal.scale());
      }
    } catch (ValueText.Unfit e) {
      throw new BadRecord(Reason.WRONG_TYPE, "field '" + name + "': expected " + e.expected + ", found " + shown(text(field)));
    }
  }

  void writeNull(UnsafeRowWriter row, int to) {
    // Spark keeps the room of a wide decimal in rows in which it is null; those of JSON have it, too.
    if (kind == Kind.DECIMAL && decimal.precision() > Decimal.MAX_LONG_DIGITS())
      row.write(to, (Decimal) null, decimal.precision(), decimal.scale());
    else row.setNullAt(to);
  }

  /** Copies a value from another row. */
  void copy(UnsafeRow from, int i, UnsafeRowWriter row, int to) {
    switch (kind) {
      case TEXT -> row.write(to, from.getUTF8String(i));
      case LONG, TIMESTAMP -> row.write(to, from.getLong(i));
      case INT, DATE -> row.write(to, from.getInt(i));
      case SHORT -> row.write(to, from.getShort(i));
      case BYTE -> row.write(to, from.getByte(i));
      case DOUBLE -> row.write(to, from.getDouble(i));
      case FLOAT -> row.write(to, from.getFloat(i));
      case BOOLEAN -> row.write(to, from.getBoolean(i));
      case BINARY -> row.write(to, from.getBinary(i));
      case DECIMAL -> row.write(
          to, from.getDecimal(i, decimal.precision(), decimal.scale()), decimal.precision(), decimal.scale());
    }
  }

  private static boolean bool(String text) throws ValueText.Unfit {
    if (!text.equals("true") && !text.equals("false")) throw new ValueText.Unfit("true or false");
    return text.equals("true");
  }

  static String text(CsvFields field) {
    return new String(field.bytes, field.start, field.length, StandardCharsets.UTF_8);
  }

  /** Returns a text as a message shows it: no longer than it must be, and whole characters of it. */
  private static String shown(String text) {
    if (text.isEmpty()) return "no text";
    int end = text.codePointCount(0, text.length()) <= SHOWN ? text.length() : text.offsetByCodePoints(0, SHOWN);
    return "'" + text.substring(0, end) + (end < text.length() ? "…" : "") + "'";
  }
}
