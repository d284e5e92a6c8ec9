package io.headgate.kernel.json;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamReadFeature;
import io.headgate.kernel.json.BadRecord.Reason;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;

/** Strict reading of JSON values by type: what does not fit exactly is a {@link BadRecord}, never a null or a cast. */
final class JsonReading {
  static final JsonFactory JSON = JsonFactory.builder()
      .enable(StreamReadFeature.USE_FAST_DOUBLE_PARSER)
      // How much text a record may hold is bounded by the record's own size.
      .streamReadConstraints(StreamReadConstraints.builder()
          .maxStringLength(Integer.MAX_VALUE).maxNameLength(Integer.MAX_VALUE).build())
      .build();

  /** The key under which a field's metadata holds its default. */
  private static final String DEFAULT = "headgate.default";

  /** Reads the value at the parser's current token; never called at null. */
  interface Reader extends Serializable {
    Object read(JsonParser p, String field) throws IOException, BadRecord;
  }

  private JsonReading() {}

  static BadRecord wrong(JsonParser p, String field, String expected) throws IOException {
    return new BadRecord(Reason.WRONG_TYPE, "field '" + field + "': expected " + expected + ", found " + found(p));
  }

  static String found(JsonParser p) throws IOException {
    JsonToken t = p.currentToken();
    if (t == null) return "nothing";
    return switch (t) {
      case START_OBJECT, END_OBJECT, FIELD_NAME -> "an object";
      case START_ARRAY, END_ARRAY -> "an array";
      case VALUE_STRING -> "a string";
      case VALUE_NUMBER_INT, VALUE_NUMBER_FLOAT -> {
        String text = p.getText();
        yield "the number " + (text.length() > 40 ? text.substring(0, 40) + "…" : text);
      }
      case VALUE_TRUE -> "true";
      case VALUE_FALSE -> "false";
      case VALUE_NULL -> "null";
      default -> t.toString();
    };
  }

  static Reader of(DataType type) {
    if (type instanceof LongType) return integer("an integer", Long.MIN_VALUE, Long.MAX_VALUE, v -> v);
    if (type instanceof IntegerType) return integer("a 32-bit integer", Integer.MIN_VALUE, Integer.MAX_VALUE, v -> (int) v);
    if (type instanceof ShortType) return integer("a 16-bit integer", Short.MIN_VALUE, Short.MAX_VALUE, v -> (short) v);
    if (type instanceof ByteType) return integer("an 8-bit integer", Byte.MIN_VALUE, Byte.MAX_VALUE, v -> (byte) v);
    if (type instanceof DoubleType) return JsonReading::readDouble;
    if (type instanceof FloatType) return JsonReading::readFloat;
    if (type instanceof BooleanType) return JsonReading::readBoolean;
    if (type instanceof StringType) return JsonReading::readString;
    if (type instanceof BinaryType) return JsonReading::readBinary;
    if (type instanceof DateType) return JsonReading::readDate;
    if (type instanceof TimestampType) return JsonReading::readTimestamp;
    if (type instanceof DecimalType d) return (p, field) -> readDecimal(p, field, d);
    if (type instanceof ArrayType a) return array(a);
    if (type instanceof MapType m) return map(m);
    if (type instanceof StructType s) return new Struct(s);
    throw new IllegalArgumentException("no JSON form for type " + type.sql());
  }

  private interface Narrow extends Serializable {
    Object of(long value);
  }

  private static Reader integer(String expected, long min, long max, Narrow narrow) {
    return (p, field) -> {
      if (p.currentToken() != JsonToken.VALUE_NUMBER_INT || p.getNumberType() == JsonParser.NumberType.BIG_INTEGER)
        throw wrong(p, field, expected);
      long v = p.getLongValue();
      if (v < min || v > max) throw wrong(p, field, expected);
      return narrow.of(v);
    };
  }

  private static Object readDouble(JsonParser p, String field) throws IOException, BadRecord {
    if (!p.currentToken().isNumeric()) throw wrong(p, field, "a number");
    double v = p.getDoubleValue();
    if (Double.isInfinite(v)) throw wrong(p, field, "a number a double can hold");
    return v;
  }

  private static Object readFloat(JsonParser p, String field) throws IOException, BadRecord {
    if (!p.currentToken().isNumeric()) throw wrong(p, field, "a number");
    float v = (float) p.getDoubleValue();
    if (Float.isInfinite(v)) throw wrong(p, field, "a number a float can hold");
    return v;
  }

  private static Object readBoolean(JsonParser p, String field) throws IOException, BadRecord {
    if (!p.currentToken().isBoolean()) throw wrong(p, field, "true or false");
    return p.getBooleanValue();
  }

  private static Object readString(JsonParser p, String field) throws IOException, BadRecord {
    if (p.currentToken() != JsonToken.VALUE_STRING) throw wrong(p, field, "a string");
    return text(p, field);
  }

  /** Returns the current string as UTF-8; most are ASCII and need no more than narrowing. */
  private static UTF8String text(JsonParser p, String field) throws IOException, BadRecord {
    char[] chars = p.getTextCharacters();
    int from = p.getTextOffset();
    int n = p.getTextLength();
    byte[] out = new byte[n];
    for (int i = 0; i < n; i++) {
      char c = chars[from + i];
      if (c >= 0x80) return text(new String(chars, from, n), field);
      out[i] = (byte) c;
    }
    return UTF8String.fromBytes(out);
  }

  /** Returns text as UTF-8; half of a surrogate pair, which an escape may bring, has no such form. */
  private static UTF8String text(String s, String field) throws BadRecord {
    for (int i = 0; i < s.length(); i++) {
      if (!Character.isSurrogate(s.charAt(i))) continue;
      if (!Character.isSurrogatePair(s.charAt(i), i + 1 < s.length() ? s.charAt(i + 1) : 0))
        throw new BadRecord(Reason.NOT_UTF8, String.format("field '%s': half of a surrogate pair, \\u%04x, is not a character",
            field, (int) s.charAt(i)));
      i++;
    }
    return UTF8String.fromString(s);
  }

  private static Object readBinary(JsonParser p, String field) throws IOException, BadRecord {
    if (p.currentToken() != JsonToken.VALUE_STRING) throw wrong(p, field, "a base64 string");
    return parsed(p, field, ValueText::readBinary);
  }

  private static Object readDate(JsonParser p, String field) throws IOException, BadRecord {
    if (p.currentToken() != JsonToken.VALUE_STRING) throw wrong(p, field, "a date such as \"2026-11-15\"");
    return parsed(p, field, ValueText::readDate);
  }

  private static Object readTimestamp(JsonParser p, String field) throws IOException, BadRecord {
    if (p.currentToken() != JsonToken.VALUE_STRING) throw wrong(p, field, "a time such as \"2026-11-15T10:05:00Z\"");
    return parsed(p, field, ValueText::readTimestamp);
  }

  private static Object readDecimal(JsonParser p, String field, DecimalType type) throws IOException, BadRecord {
    if (!p.currentToken().isNumeric() && p.currentToken() != JsonToken.VALUE_STRING)
      throw wrong(p, field, "a number that fits " + type.sql());
    return parsed(p, field, text -> ValueText.readDecimal(text, type));
  }

  private interface Parser {
    Object parse(String text) throws ValueText.Unfit;
  }

  private static Object parsed(JsonParser p, String field, Parser parser) throws IOException, BadRecord {
    try {
      return parser.parse(p.getText());
    } catch (ValueText.Unfit e) {
      throw wrong(p, field, e.expected);
    }
  }

  private static Reader array(ArrayType type) {
    Reader element = of(type.elementType());
    return (p, field) -> {
      if (p.currentToken() != JsonToken.START_ARRAY) throw wrong(p, field, "an array");
      var out = new ArrayList<Object>();
      while (p.nextToken() != JsonToken.END_ARRAY) out.add(member(p, field + "[" + out.size() + "]", element, type.containsNull()));
      return new GenericArrayData(out.toArray());
    };
  }

  private static Reader map(MapType type) {
    Reader value = of(type.valueType());
    return (p, field) -> {
      if (p.currentToken() != JsonToken.START_OBJECT) throw wrong(p, field, "an object");
      var out = new java.util.LinkedHashMap<UTF8String, Object>();
      while (p.nextToken() != JsonToken.END_OBJECT) {
        String name = p.currentName();
        p.nextToken();
        out.put(text(name, field), member(p, field + "." + name, value, type.valueContainsNull()));
      }
      return new ArrayBasedMapData(
          new GenericArrayData(out.keySet().toArray()), new GenericArrayData(out.values().toArray()));
    };
  }

  private static Object member(JsonParser p, String field, Reader reader, boolean nullable) throws IOException, BadRecord {
    if (p.currentToken() != JsonToken.VALUE_NULL) return reader.read(p, field);
    if (!nullable) throw new BadRecord(Reason.NULL_FIELD, "field '" + field + "' must not be null");
    return null;
  }

  /** Reads an object field by field; unknown fields are passed over, absent ones take their default. */
  static final class Struct implements Reader {
    private final String[] names;
    private final boolean[] nullable;
    private final Reader[] readers;
    private final Object[] defaults;
    private final HashMap<String, Integer> ordinals = new HashMap<>();

    /** @param type its fields' metadata may hold a default as JSON text, used where the field is absent */
    Struct(StructType type) {
      int n = type.length();
      names = new String[n];
      nullable = new boolean[n];
      readers = new Reader[n];
      defaults = new Object[n];
      for (int i = 0; i < n; i++) {
        StructField f = type.fields()[i];
        names[i] = f.name().intern();
        nullable[i] = f.nullable();
        readers[i] = JsonReading.of(f.dataType());
        ordinals.put(names[i], i);
        if (f.metadata().contains(DEFAULT)) defaults[i] = parse(readers[i], f.name(), f.metadata().getString(DEFAULT));
      }
    }

    private static Object parse(Reader reader, String field, String json) {
      try (JsonParser p = JSON.createParser(json)) {
        return p.nextToken() == JsonToken.VALUE_NULL ? null : reader.read(p, field);
      } catch (IOException | BadRecord e) {
        throw new IllegalArgumentException("the default of field '" + field + "' does not fit: " + e.getMessage(), e);
      }
    }

    private Object readResolve() {
      // Names that come over the wire are not the interned ones that the parser gives.
      for (int i = 0; i < names.length; i++) names[i] = names[i].intern();
      return this;
    }

    @Override public Object read(JsonParser p, String field) throws IOException, BadRecord {
      if (p.currentToken() != JsonToken.START_OBJECT) throw wrong(p, field, "an object");
      return new GenericInternalRow(fields(p, field + ".", null));
    }

    /**
     * Reads the fields of the object the parser stands at the start of.
     *
     * @param marks told of fields this struct does not have, before they are passed over; may be null
     */
    Object[] fields(JsonParser p, String prefix, Marks marks) throws IOException, BadRecord {
      Object[] values = new Object[names.length];
      boolean[] seen = new boolean[names.length];
      int next = 0;
      while (p.nextToken() != JsonToken.END_OBJECT) {
        String name = p.currentName();
        // Fields mostly come in the schema's order, and Jackson interns names: one comparison finds them.
        int i = next < names.length && names[next] == name ? next : ordinals.getOrDefault(name, -1);
        p.nextToken();
        if (i < 0) {
          if (marks == null || !marks.take(p, name)) p.skipChildren();
          continue;
        }
        values[i] = p.currentToken() == JsonToken.VALUE_NULL ? null : readers[i].read(p, prefix.isEmpty() ? name : prefix + name);
        seen[i] = true;
        next = i + 1;
      }
      if (marks != null && marks.lenient()) return values;
      for (int i = 0; i < values.length; i++) {
        if (values[i] != null) continue;
        if (!seen[i] && defaults[i] != null) {
          values[i] = defaults[i];
        } else if (!nullable[i]) {
          if (seen[i]) throw new BadRecord(Reason.NULL_FIELD, "field '" + prefix + names[i] + "' must not be null");
          throw new BadRecord(Reason.MISSING_FIELD, "field '" + prefix + names[i] + "' is missing");
        }
      }
      return values;
    }
  }

  /** What a record says of itself beside its fields. */
  interface Marks {
    /** Returns true if the field at the parser was taken in whole. */
    boolean take(JsonParser p, String name) throws IOException, BadRecord;

    /** Returns true if absent fields are fine, as in a tombstone. */
    boolean lenient();
  }

  static BadRecord badJson(JsonProcessingException e) {
    String at = e.getLocation() == null ? "" : " at byte " + e.getLocation().getByteOffset();
    String what = e.getOriginalMessage();
    int cut = what.indexOf('\n');
    return new BadRecord(Reason.BAD_JSON, (cut < 0 ? what : what.substring(0, cut)) + at);
  }
}
