package io.headgate.kernel.windows;

import java.math.BigDecimal;
import java.math.BigInteger;
import org.apache.datasketches.hll.HllSketch;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** A place for one value of a type, which can be compared and written. */
interface Value {
  /** Returns a place for values of a type, or null for a type that has no order. */
  static Value of(DataType type) {
    if (Numbers.isWhole(type)) return new Whole(Numbers.whole(type));
    if (type instanceof DoubleType || type instanceof FloatType) return new Real(type);
    if (type instanceof StringType) return new Text();
    if (type instanceof DecimalType d) return new Exact(d);
    return null;
  }

  /** Returns a place for values that are kept and never compared, or null for a type that has none. */
  static Value kept(DataType type) {
    return type instanceof StructType struct ? new Packed(struct.length()) : of(type);
  }

  void take(InternalRow row, int i);

  /** Compares a value of a row with the one here: negative where the row's is less. */
  int compare(InternalRow row, int i);

  /** Takes a value of the form that {@link #get} gives. */
  void set(Object value);

  /** Returns the value as Spark's rows hold it. */
  Object get();

  void write(StateWriter out);

  void read(StateReader in);

  void count(HllSketch sketch);

  /** Whole numbers, booleans, dates and times. */
  final class Whole implements Value {
    private final Numbers.Whole form;
    private long value;

    Whole(Numbers.Whole form) {
      this.form = form;
    }

    @Override public void take(InternalRow row, int i) { value = form.get(row, i); }
    @Override public int compare(InternalRow row, int i) { return Long.compare(form.get(row, i), value); }
    @Override public void set(Object v) { value = form.unbox(v); }
    @Override public Object get() { return form.box(value); }
    @Override public void write(StateWriter out) { out.putLong(value); }
    @Override public void read(StateReader in) { value = in.getLong(); }
    @Override public void count(HllSketch sketch) { sketch.update(value); }
  }

  /** Floating point numbers; NaN is the greatest of them, and there is one zero. */
  final class Real implements Value {
    private final boolean single;
    private double value;

    Real(DataType type) {
      single = type instanceof FloatType;
    }

    // Adding zero takes the sign from a negative zero.
    private double at(InternalRow row, int i) { return (single ? row.getFloat(i) : row.getDouble(i)) + 0.0; }

    @Override public void take(InternalRow row, int i) { value = at(row, i); }
    @Override public int compare(InternalRow row, int i) { return Double.compare(at(row, i), value); }
    @Override public void set(Object v) { value = ((Number) v).doubleValue(); }

    @Override public Object get() {
      if (single) return (float) value;
      return value;
    }

    @Override public void write(StateWriter out) { out.putDouble(value); }
    @Override public void read(StateReader in) { value = in.getDouble(); }
    @Override public void count(HllSketch sketch) { sketch.update(value); }
  }

  /** Strings, by their bytes. */
  final class Text implements Value {
    /** Stands in sketches for the empty string, which they would leave out. */
    private static final byte[] EMPTY = {0, 'e', 'm', 'p', 't', 'y', 0};

    private UTF8String value;

    @Override public void take(InternalRow row, int i) { value = row.getUTF8String(i); }
    @Override public int compare(InternalRow row, int i) { return row.getUTF8String(i).binaryCompare(value); }
    @Override public void set(Object v) { value = (UTF8String) v; }
    @Override public Object get() { return value; }
    @Override public void write(StateWriter out) { out.putBytes(value.getBytes()); }
    @Override public void read(StateReader in) { value = UTF8String.fromBytes(in.getBytes()); }
    @Override public void count(HllSketch sketch) { sketch.update(value.numBytes() == 0 ? EMPTY : value.getBytes()); }
  }

  /** Structs, as Spark packs them; they have no order. */
  final class Packed implements Value {
    private final int width;
    private UnsafeRow value;

    Packed(int width) {
      this.width = width;
    }

    /** @param i {@link Column#WHOLE} for the row itself */
    @Override public void take(InternalRow row, int i) {
      value = (UnsafeRow) (i == Column.WHOLE ? row : row.getStruct(i, width)).copy();
    }

    @Override public int compare(InternalRow row, int i) { throw new UnsupportedOperationException("structs have no order"); }
    @Override public void set(Object v) { value = (UnsafeRow) v; }
    @Override public Object get() { return value; }
    @Override public void write(StateWriter out) { out.putBytes(value.getBytes()); }

    @Override public void read(StateReader in) {
      byte[] bytes = in.getBytes();
      value = new UnsafeRow(width);
      value.pointTo(bytes, bytes.length);
    }

    @Override public void count(HllSketch sketch) { throw new UnsupportedOperationException("structs are not counted"); }
  }

  /** Decimals of one precision and scale. */
  final class Exact implements Value {
    private final int precision;
    private final int scale;
    private Decimal value;

    Exact(DecimalType type) {
      precision = type.precision();
      scale = type.scale();
    }

    private byte[] unscaled() { return value.toJavaBigDecimal().setScale(scale).unscaledValue().toByteArray(); }

    @Override public void take(InternalRow row, int i) { value = row.getDecimal(i, precision, scale); }
    @Override public int compare(InternalRow row, int i) { return row.getDecimal(i, precision, scale).compare(value); }
    @Override public void set(Object v) { value = (Decimal) v; }
    @Override public Object get() { return value; }
    @Override public void write(StateWriter out) { out.putBytes(unscaled()); }

    @Override public void read(StateReader in) {
      value = Decimal.apply(new BigDecimal(new BigInteger(in.getBytes()), scale), precision, scale);
    }

    @Override public void count(HllSketch sketch) { sketch.update(unscaled()); }
  }
}
