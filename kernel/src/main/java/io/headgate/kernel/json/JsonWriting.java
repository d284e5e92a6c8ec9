package io.headgate.kernel.json;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.*;

/** Writing of packed values as JSON, by type. */
final class JsonWriting {
  /** Writes the value at an ordinal of a row or array; never called at null. */
  interface Writer extends Serializable {
    void write(JsonText out, SpecializedGetters row, int i);
  }

  private JsonWriting() {}

  static Writer of(DataType type) {
    if (type instanceof LongType) return (out, row, i) -> out.number(row.getLong(i));
    if (type instanceof IntegerType) return (out, row, i) -> out.number(row.getInt(i));
    if (type instanceof ShortType) return (out, row, i) -> out.number(row.getShort(i));
    if (type instanceof ByteType) return (out, row, i) -> out.number(row.getByte(i));
    if (type instanceof DoubleType) return (out, row, i) -> out.number(row.getDouble(i));
    if (type instanceof FloatType) return (out, row, i) -> out.number(row.getFloat(i));
    if (type instanceof BooleanType) return (out, row, i) -> out.bool(row.getBoolean(i));
    if (type instanceof StringType) return (out, row, i) -> out.text(row.getUTF8String(i));
    if (type instanceof BinaryType) return (out, row, i) -> out.quoted(ValueText.ofBinary(row.getBinary(i)));
    if (type instanceof DateType) return (out, row, i) -> out.quoted(ValueText.ofDate(row.getInt(i)));
    if (type instanceof TimestampType) return (out, row, i) -> out.quoted(ValueText.ofTimestamp(row.getLong(i)));
    if (type instanceof DecimalType d)
      return (out, row, i) -> out.ascii(ValueText.ofDecimal(row.getDecimal(i, d.precision(), d.scale())));
    if (type instanceof ArrayType a) return array(a);
    if (type instanceof MapType m && m.keyType() instanceof StringType) return map(m);
    if (type instanceof StructType s) return new Struct(s);
    throw new IllegalArgumentException("no JSON form for type " + type.sql());
  }

  private static Writer array(ArrayType type) {
    Writer element = of(type.elementType());
    return (out, row, i) -> {
      ArrayData a = row.getArray(i);
      out.add('[');
      for (int k = 0; k < a.numElements(); k++) {
        if (k > 0) out.add(',');
        if (a.isNullAt(k)) out.addNull();
        else element.write(out, a, k);
      }
      out.add(']');
    };
  }

  private static Writer map(MapType type) {
    Writer value = of(type.valueType());
    return (out, row, i) -> {
      MapData m = row.getMap(i);
      ArrayData keys = m.keyArray();
      ArrayData values = m.valueArray();
      out.add('{');
      for (int k = 0; k < m.numElements(); k++) {
        if (k > 0) out.add(',');
        out.text(keys.getUTF8String(k));
        out.add(':');
        if (values.isNullAt(k)) out.addNull();
        else value.write(out, values, k);
      }
      out.add('}');
    };
  }

  /** Writes a struct as an object with every field, null where it is. */
  static final class Struct implements Writer {
    private final byte[][] names;
    private final Writer[] writers;

    Struct(StructType type) {
      names = new byte[type.length()][];
      writers = new Writer[type.length()];
      for (int i = 0; i < names.length; i++) {
        names[i] = JsonText.name(type.fields()[i].name());
        writers[i] = JsonWriting.of(type.fields()[i].dataType());
      }
    }

    @Override public void write(JsonText out, SpecializedGetters row, int i) {
      fields(out, row.getStruct(i, names.length));
    }

    void fields(JsonText out, SpecializedGetters s) {
      out.add('{');
      for (int k = 0; k < names.length; k++) {
        if (k > 0) out.add(',');
        out.add(names[k]);
        if (s.isNullAt(k)) out.addNull();
        else writers[k].write(out, s, k);
      }
      out.add('}');
    }
  }
}
