package io.headgate.kernel.formats.avro;

import io.headgate.kernel.formats.avro.AvroSchemas.Unwritable;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import java.util.HashMap;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;

/** Compiles writers of values: a column's type as a schema has it. What does not fit is refused. */
final class ValueWriters {
  private ValueWriters() {}

  /** Returns a writer of values and nulls; a null that the schema has no place for is a {@link BadRecord}. */
  static ValueWriter of(Schema schema, DataType type, String field) {
    if (schema.getType() != Schema.Type.UNION) {
      ValueWriter writer = find(schema, type, field);
      if (writer == null) throw mismatch(schema, type, field);
      return (out, row, i) -> {
        if (row.isNullAt(i)) throw new BadRecord(Reason.NULL_FIELD, "field '" + field + "' must not be null in Avro's schema");
        writer.write(out, row, i);
      };
    }
    return union(schema, type, field);
  }

  private static ValueWriter union(Schema schema, DataType type, String field) {
    List<Schema> branches = schema.getTypes();
    int ofNull = -1;
    int ofValue = -1;
    ValueWriter value = null;
    for (int k = 0; k < branches.size(); k++) {
      if (branches.get(k).getType() == Schema.Type.NULL) ofNull = k;
      else if (value == null && (value = find(branches.get(k), type, field)) != null) ofValue = k;
    }
    if (value == null) throw mismatch(schema, type, field);
    int nothing = ofNull;
    int branch = ofValue;
    ValueWriter writer = value;
    return (out, row, i) -> {
      if (!row.isNullAt(i)) {
        out.addLong(branch);
        writer.write(out, row, i);
      } else if (nothing >= 0) {
        out.addLong(nothing);
      } else {
        throw new BadRecord(Reason.NULL_FIELD, "field '" + field + "' must not be null in Avro's schema");
      }
    };
  }

  private static Unwritable mismatch(Schema schema, DataType type, String field) {
    return new Unwritable("column '" + field + "' is " + type.sql() + ", and the schema has " + AvroTypes.describe(schema),
        "cast it: CAST(" + field + " AS " + AvroTypes.suggest(schema) + ")");
  }

  /** Returns a writer of values that are not null, or null if the type does not fit. */
  private static ValueWriter find(Schema schema, DataType type, String field) {
    if (type instanceof DecimalType d) return DecimalWriter.find(schema, d);
    if (type instanceof ArrayType a && schema.getType() == Schema.Type.ARRAY) return array(schema, a, field);
    if (type instanceof MapType m && m.keyType() instanceof StringType && schema.getType() == Schema.Type.MAP)
      return map(schema, m, field);
    if (type instanceof StructType s && schema.getType() == Schema.Type.RECORD) {
      var record = new RecordWriter(schema, s, field + ".");
      return (out, row, i) -> record.write(out, row.getStruct(i, s.length()));
    }
    return switch (schema.getType()) {
      case BOOLEAN -> type instanceof BooleanType ? (out, row, i) -> out.add(row.getBoolean(i) ? 1 : 0) : null;
      case INT, LONG -> integer(schema, type, field);
      case FLOAT -> type instanceof FloatType ? (out, row, i) -> out.addFloat(row.getFloat(i)) : null;
      case DOUBLE -> real(type);
      case STRING -> type instanceof StringType ? text(schema, field) : null;
      case ENUM -> type instanceof StringType ? symbol(schema, field) : null;
      case BYTES -> type instanceof BinaryType && AvroTypes.logical(schema).isEmpty()
          ? (out, row, i) -> out.addBytes(row.getBinary(i)) : null;
      case FIXED -> type instanceof BinaryType ? fixed(schema, field) : null;
      default -> null;
    };
  }

  private static ValueWriter integer(Schema schema, DataType type, String field) {
    boolean isLong = schema.getType() == Schema.Type.LONG;
    if (type instanceof DateType)
      return AvroTypes.logical(schema).equals("date") ? (out, row, i) -> out.addLong(row.getInt(i)) : null;
    if (type instanceof TimestampType) return isLong ? time(AvroTypes.logical(schema), field) : null;
    if (type instanceof LongType) return isLong ? (out, row, i) -> out.addLong(row.getLong(i)) : null;
    if (type instanceof IntegerType) return (out, row, i) -> out.addLong(row.getInt(i));
    if (type instanceof ShortType) return (out, row, i) -> out.addLong(row.getShort(i));
    if (type instanceof ByteType) return (out, row, i) -> out.addLong(row.getByte(i));
    return null;
  }

  private static ValueWriter time(String logical, String field) {
    return switch (logical) {
      case "timestamp-micros", "local-timestamp-micros" -> (out, row, i) -> out.addLong(row.getLong(i));
      case "timestamp-millis", "local-timestamp-millis" -> (out, row, i) -> {
        long micros = row.getLong(i);
        if (micros % 1000 != 0)
          throw NumberReaders.wrong(field, "a time of whole milliseconds", micros + " µs; use date_trunc('MILLISECOND', …)");
        out.addLong(micros / 1000);
      };
      default -> null;
    };
  }

  private static ValueWriter real(DataType type) {
    if (type instanceof DoubleType) return (out, row, i) -> out.addDouble(row.getDouble(i));
    if (type instanceof FloatType) return (out, row, i) -> out.addDouble(row.getFloat(i));
    if (type instanceof IntegerType) return (out, row, i) -> out.addDouble(row.getInt(i));
    if (type instanceof ShortType) return (out, row, i) -> out.addDouble(row.getShort(i));
    return type instanceof ByteType ? (out, row, i) -> out.addDouble(row.getByte(i)) : null;
  }

  private static ValueWriter text(Schema schema, String field) {
    boolean isId = AvroTypes.logical(schema).equals("uuid");
    return (out, row, i) -> {
      UTF8String text = row.getUTF8String(i);
      // Readers take what is said to be an id for one, and Java's own parser takes more than ids.
      if (isId && !text.toString().matches("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"))
        throw NumberReaders.wrong(field, "a UUID", "'" + cut(text) + "'");
      out.addText(text);
    };
  }

  private static ValueWriter symbol(Schema schema, String field) {
    var ordinals = new HashMap<UTF8String, Integer>();
    for (String symbol : schema.getEnumSymbols()) ordinals.put(UTF8String.fromString(symbol), ordinals.size());
    return (out, row, i) -> {
      Integer ordinal = ordinals.get(row.getUTF8String(i));
      if (ordinal == null)
        throw NumberReaders.wrong(field, "a symbol of " + AvroTypes.describe(schema), "'" + cut(row.getUTF8String(i)) + "'");
      out.addLong(ordinal);
    };
  }

  private static String cut(UTF8String text) {
    String shown = text.toString();
    return shown.length() > 40 ? shown.substring(0, 40) + "…" : shown;
  }

  private static ValueWriter fixed(Schema schema, String field) {
    if (!AvroTypes.logical(schema).isEmpty() && AvroTypes.logical(schema).equals("decimal")) return null;
    int size = schema.getFixedSize();
    return (out, row, i) -> {
      byte[] value = row.getBinary(i);
      if (value.length != size) throw NumberReaders.wrong(field, size + " bytes", value.length + " bytes");
      out.addRaw(value);
    };
  }

  private static ValueWriter array(Schema schema, ArrayType type, String field) {
    ValueWriter element = of(schema.getElementType(), type.elementType(), field + "[]");
    return (out, row, i) -> {
      ArrayData a = row.getArray(i);
      int count = a.numElements();
      if (count > 0) out.addLong(count);
      for (int k = 0; k < count; k++) element.write(out, a, k);
      out.addLong(0);
    };
  }

  private static ValueWriter map(Schema schema, MapType type, String field) {
    ValueWriter value = of(schema.getValueType(), type.valueType(), field + "[]");
    return (out, row, i) -> {
      MapData m = row.getMap(i);
      ArrayData keys = m.keyArray();
      ArrayData values = m.valueArray();
      int count = m.numElements();
      if (count > 0) out.addLong(count);
      for (int k = 0; k < count; k++) {
        out.addText(keys.getUTF8String(k));
        value.write(out, values, k);
      }
      out.addLong(0);
    };
  }

  /** Returns a writer of what a field is when there is no column for it. */
  static ValueWriter constant(byte[] encoded) {
    return (AvroOutput out, SpecializedGetters row, int i) -> out.addRaw(encoded);
  }
}
