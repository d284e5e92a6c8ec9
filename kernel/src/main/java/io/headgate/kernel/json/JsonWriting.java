package io.headgate.kernel.json;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.StreamWriteFeature;
import com.fasterxml.jackson.core.io.SerializedString;
import java.io.IOException;
import java.io.Serializable;
import java.time.Instant;
import java.time.LocalDate;
import java.util.Base64;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;

/** Writing of packed values as JSON, by type. */
final class JsonWriting {
  static final JsonFactory JSON = JsonFactory.builder()
      .enable(StreamWriteFeature.USE_FAST_DOUBLE_WRITER)
      .enable(StreamWriteFeature.WRITE_BIGDECIMAL_AS_PLAIN)
      .build();

  /** Writes the value at an ordinal of a row or array; never called at null. */
  interface Writer extends Serializable {
    void write(JsonGenerator g, SpecializedGetters row, int i) throws IOException;
  }

  private JsonWriting() {}

  static Writer of(DataType type) {
    if (type instanceof LongType) return (g, row, i) -> g.writeNumber(row.getLong(i));
    if (type instanceof IntegerType) return (g, row, i) -> g.writeNumber(row.getInt(i));
    if (type instanceof ShortType) return (g, row, i) -> g.writeNumber(row.getShort(i));
    if (type instanceof ByteType) return (g, row, i) -> g.writeNumber((int) row.getByte(i));
    if (type instanceof DoubleType) return (g, row, i) -> g.writeNumber(row.getDouble(i));
    if (type instanceof FloatType) return (g, row, i) -> g.writeNumber(row.getFloat(i));
    if (type instanceof BooleanType) return (g, row, i) -> g.writeBoolean(row.getBoolean(i));
    if (type instanceof StringType) return (g, row, i) -> text(g, row.getUTF8String(i));
    if (type instanceof BinaryType) return (g, row, i) -> g.writeString(Base64.getEncoder().encodeToString(row.getBinary(i)));
    if (type instanceof DateType) return (g, row, i) -> g.writeString(LocalDate.ofEpochDay(row.getInt(i)).toString());
    if (type instanceof TimestampType) return (g, row, i) -> g.writeString(instant(row.getLong(i)).toString());
    if (type instanceof DecimalType d)
      return (g, row, i) -> g.writeNumber(row.getDecimal(i, d.precision(), d.scale()).toJavaBigDecimal());
    if (type instanceof ArrayType a) return array(a);
    if (type instanceof MapType m) return map(m);
    if (type instanceof StructType s) return new Struct(s);
    throw new IllegalArgumentException("no JSON form for type " + type.sql());
  }

  private static Instant instant(long micros) {
    return Instant.ofEpochSecond(Math.floorDiv(micros, 1_000_000L), Math.floorMod(micros, 1_000_000L) * 1000L);
  }

  private static void text(JsonGenerator g, UTF8String s) throws IOException {
    byte[] b = s.getBytes();
    g.writeUTF8String(b, 0, b.length);
  }

  private static Writer array(ArrayType type) {
    Writer element = of(type.elementType());
    return (g, row, i) -> {
      ArrayData a = row.getArray(i);
      g.writeStartArray();
      for (int k = 0; k < a.numElements(); k++) {
        if (a.isNullAt(k)) g.writeNull();
        else element.write(g, a, k);
      }
      g.writeEndArray();
    };
  }

  private static Writer map(MapType type) {
    Writer value = of(type.valueType());
    return (g, row, i) -> {
      MapData m = row.getMap(i);
      ArrayData keys = m.keyArray();
      ArrayData values = m.valueArray();
      g.writeStartObject();
      for (int k = 0; k < m.numElements(); k++) {
        g.writeFieldName(keys.getUTF8String(k).toString());
        if (values.isNullAt(k)) g.writeNull();
        else value.write(g, values, k);
      }
      g.writeEndObject();
    };
  }

  /** Writes a struct as an object with every field, null where it is. */
  static final class Struct implements Writer {
    private final SerializedString[] names;
    private final Writer[] writers;

    Struct(StructType type) {
      names = new SerializedString[type.length()];
      writers = new Writer[type.length()];
      for (int i = 0; i < names.length; i++) {
        names[i] = new SerializedString(type.fields()[i].name());
        writers[i] = JsonWriting.of(type.fields()[i].dataType());
      }
    }

    @Override public void write(JsonGenerator g, SpecializedGetters row, int i) throws IOException {
      SpecializedGetters s = row.getStruct(i, names.length);
      fields(g, s);
    }

    void fields(JsonGenerator g, SpecializedGetters s) throws IOException {
      g.writeStartObject();
      for (int k = 0; k < names.length; k++) {
        g.writeFieldName(names[k]);
        if (s.isNullAt(k)) g.writeNull();
        else writers[k].write(g, s, k);
      }
      g.writeEndObject();
    }
  }
}
