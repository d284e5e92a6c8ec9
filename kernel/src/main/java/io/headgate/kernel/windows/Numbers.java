package io.headgate.kernel.windows;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.*;

/** Reading of columns as numbers. */
final class Numbers {
  /** A type whose values are whole numbers at heart. */
  interface Whole extends Serializable {
    long get(InternalRow row, int i);

    /** Returns the value as Spark's rows hold it. */
    Object box(long value);

    default long unbox(Object value) {
      if (value instanceof Boolean b) return b ? 1 : 0;
      return ((Number) value).longValue();
    }
  }

  /** A column read as a floating point number. */
  interface Real extends Serializable {
    double get(InternalRow row, int i);
  }

  private Numbers() {}

  static boolean isWhole(DataType type) {
    return type instanceof IntegralType || type instanceof BooleanType || type instanceof DateType
        || type instanceof TimestampType;
  }

  static Whole whole(DataType type) {
    if (type instanceof BooleanType) return new Bool();
    if (type instanceof ByteType) return new Tiny();
    if (type instanceof ShortType) return new Small();
    if (type instanceof IntegerType || type instanceof DateType) return new Plain();
    return new Big();
  }

  /** Returns a reader of numbers of a type, or null for a type that is no number. */
  static Real real(DataType type) {
    if (type instanceof DoubleType) return (row, i) -> row.getDouble(i);
    if (type instanceof FloatType) return (row, i) -> row.getFloat(i);
    if (type instanceof DecimalType d) return (row, i) -> row.getDecimal(i, d.precision(), d.scale()).toDouble();
    if (!(type instanceof IntegralType)) return null;
    Whole whole = whole(type);
    return (row, i) -> whole.get(row, i);
  }

  private record Bool() implements Whole {
    @Override public long get(InternalRow row, int i) { return row.getBoolean(i) ? 1 : 0; }
    @Override public Object box(long value) { return value != 0; }
  }

  private record Tiny() implements Whole {
    @Override public long get(InternalRow row, int i) { return row.getByte(i); }
    @Override public Object box(long value) { return (byte) value; }
  }

  private record Small() implements Whole {
    @Override public long get(InternalRow row, int i) { return row.getShort(i); }
    @Override public Object box(long value) { return (short) value; }
  }

  private record Plain() implements Whole {
    @Override public long get(InternalRow row, int i) { return row.getInt(i); }
    @Override public Object box(long value) { return (int) value; }
  }

  private record Big() implements Whole {
    @Override public long get(InternalRow row, int i) { return row.getLong(i); }
    @Override public Object box(long value) { return value; }
  }
}
