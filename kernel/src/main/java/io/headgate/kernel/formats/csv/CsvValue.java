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
  /** Writes the value of the field at hand. */
  private interface Reader extends Serializable {
    void read(CsvFields field, UnsafeRowWriter row, int to) throws ValueText.Unfit;
  }

  /** Copies a value from row to row. */
  private interface Copy extends Serializable {
    void copy(UnsafeRow from, int i, UnsafeRowWriter row, int to);
  }

  /** A message shows so much of a value. */
  private static final int SHOWN = 40;

  private final DataType type;
  private final Reader reader;
  private final Copy copy;

  private CsvValue(DataType type, Reader reader, Copy copy) {
    this.type = type;
    this.reader = reader;
    this.copy = copy;
  }

  static CsvValue of(DataType type) {
    if (type instanceof StringType)
      return new CsvValue(type, (field, row, to) -> row.write(to, field.bytes, field.start, field.length),
          (from, i, row, to) -> row.write(to, from.getUTF8String(i)));
    if (type instanceof LongType)
      return new CsvValue(type, (field, row, to) -> row.write(to, CsvNumber.integer(field, Long.MIN_VALUE, Long.MAX_VALUE, "an integer")),
          (from, i, row, to) -> row.write(to, from.getLong(i)));
    if (type instanceof IntegerType)
      return new CsvValue(type,
          (field, row, to) -> row.write(to, (int) CsvNumber.integer(field, Integer.MIN_VALUE, Integer.MAX_VALUE, "a 32-bit integer")),
          (from, i, row, to) -> row.write(to, from.getInt(i)));
    if (type instanceof ShortType)
      return new CsvValue(type,
          (field, row, to) -> row.write(to, (short) CsvNumber.integer(field, Short.MIN_VALUE, Short.MAX_VALUE, "a 16-bit integer")),
          (from, i, row, to) -> row.write(to, from.getShort(i)));
    if (type instanceof ByteType)
      return new CsvValue(type,
          (field, row, to) -> row.write(to, (byte) CsvNumber.integer(field, Byte.MIN_VALUE, Byte.MAX_VALUE, "an 8-bit integer")),
          (from, i, row, to) -> row.write(to, from.getByte(i)));
    if (type instanceof DoubleType)
      return new CsvValue(type, (field, row, to) -> row.write(to, CsvNumber.ofDouble(field)),
          (from, i, row, to) -> row.write(to, from.getDouble(i)));
    if (type instanceof FloatType)
      return new CsvValue(type, (field, row, to) -> row.write(to, CsvNumber.ofFloat(field)),
          (from, i, row, to) -> row.write(to, from.getFloat(i)));
    return rare(type);
  }

  private static CsvValue rare(DataType type) {
    if (type instanceof BooleanType)
      return new CsvValue(type, (field, row, to) -> row.write(to, bool(field)), (from, i, row, to) -> row.write(to, from.getBoolean(i)));
    if (type instanceof BinaryType)
      return new CsvValue(type, (field, row, to) -> row.write(to, ValueText.readBinary(text(field))),
          (from, i, row, to) -> row.write(to, from.getBinary(i)));
    if (type instanceof DateType)
      return new CsvValue(type, (field, row, to) -> row.write(to, ValueText.readDate(text(field))),
          (from, i, row, to) -> row.write(to, from.getInt(i)));
    if (type instanceof TimestampType)
      return new CsvValue(type, (field, row, to) -> row.write(to, ValueText.readTimestamp(text(field))),
          (from, i, row, to) -> row.write(to, from.getLong(i)));
    if (type instanceof DecimalType d)
      return new CsvValue(type,
          (field, row, to) -> row.write(to, ValueText.readDecimal(text(field), d), d.precision(), d.scale()),
          (from, i, row, to) -> row.write(to, from.getDecimal(i, d.precision(), d.scale()), d.precision(), d.scale()));
    throw new IllegalArgumentException("no CSV form for type " + type.sql());
  }

  private static boolean bool(CsvFields field) throws ValueText.Unfit {
    String text = text(field);
    if (!text.equals("true") && !text.equals("false")) throw new ValueText.Unfit("true or false");
    return text.equals("true");
  }

  static String text(CsvFields field) {
    return new String(field.bytes, field.start, field.length, StandardCharsets.UTF_8);
  }

  void write(CsvFields field, String name, UnsafeRowWriter row, int to) throws BadRecord {
    try {
      reader.read(field, row, to);
    } catch (ValueText.Unfit e) {
      throw new BadRecord(Reason.WRONG_TYPE, "field '" + name + "': expected " + e.expected + ", found " + shown(text(field)));
    }
  }

  /** Returns a text as a message shows it: no longer than it must be, and whole characters of it. */
  private static String shown(String text) {
    if (text.isEmpty()) return "no text";
    int end = text.codePointCount(0, text.length()) <= SHOWN ? text.length() : text.offsetByCodePoints(0, SHOWN);
    return "'" + text.substring(0, end) + (end < text.length() ? "…" : "") + "'";
  }

  void writeNull(UnsafeRowWriter row, int to) {
    // Spark keeps the room of a wide decimal in rows in which it is null; those of JSON have it, too.
    if (type instanceof DecimalType d && d.precision() > Decimal.MAX_LONG_DIGITS()) row.write(to, (Decimal) null, d.precision(), d.scale());
    else row.setNullAt(to);
  }

  void copy(UnsafeRow from, int i, UnsafeRowWriter row, int to) {
    copy.copy(from, i, row, to);
  }
}
