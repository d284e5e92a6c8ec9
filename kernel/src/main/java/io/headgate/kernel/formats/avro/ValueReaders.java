package io.headgate.kernel.formats.avro;

import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Compiles readers of values: what a writer's schema has, as the type of a column. Avro's promotions apply. What does not fit is
 * a {@link Problem}, and its reader refuses each value.
 */
final class ValueReaders {
  private final List<Problem> problems;
  /** How many unions are around the value. */
  private int branches;

  ValueReaders(List<Problem> problems) {
    this.problems = problems;
  }

  /** Returns whether values of a type can be read right into a row. */
  static boolean isFlat(DataType type) {
    return type instanceof IntegralType || type instanceof DoubleType || type instanceof FloatType || type instanceof BooleanType
        || type instanceof StringType || type instanceof BinaryType || type instanceof DateType || type instanceof TimestampType;
  }

  /** @param field the column's name, with those of the fields below it */
  ValueReader of(Schema written, DataType type, boolean nullable, String field) {
    if (written.getType() == Schema.Type.UNION) return union(written, type, nullable, field);
    if (written.getType() == Schema.Type.NULL) return ofNull(type, nullable, field);
    ValueReader reader = find(written, type, field);
    return reader == null ? mismatch(written, type, field) : reader;
  }

  private ValueReader find(Schema written, DataType type, String field) {
    if (type instanceof StringType) return TextReaders.find(written, field);
    if (type instanceof BinaryType) return TextReaders.findBytes(written);
    if (type instanceof DecimalType d) return DecimalReader.find(written, d, field);
    if (type instanceof ArrayType a && written.getType() == Schema.Type.ARRAY) return array(written, a, field);
    if (type instanceof MapType m && written.getType() == Schema.Type.MAP) return map(written, m, field);
    if (type instanceof StructType s && written.getType() == Schema.Type.RECORD)
      return new RecordReader(written, s, null, this, field + ".");
    return NumberReaders.find(written, type, field);
  }

  private ValueReader union(Schema written, DataType type, boolean nullable, String field) {
    branches++;
    var readers = new ArrayList<ValueReader>();
    for (Schema branch : written.getTypes()) readers.add(of(branch, type, nullable, field));
    branches--;
    return new Union(readers.toArray(ValueReader[]::new));
  }

  private record Union(ValueReader[] readers) implements ValueReader {
    @Override public Object read(AvroInput in) throws BadRecord {
      return readers[in.readIndex(readers.length, "branch")].read(in);
    }

    @Override public void read(AvroInput in, UnsafeRowWriter row, int i) throws BadRecord {
      readers[in.readIndex(readers.length, "branch")].read(in, row, i);
    }
  }

  private ValueReader ofNull(DataType type, boolean nullable, String field) {
    if (nullable) return new Constant(null, type);
    add(field, "may be null", "declare it nullable, such as " + last(field) + ": T | None in a dataclass");
    return refusing(Reason.NULL_FIELD, "field '" + field + "' must not be null");
  }

  ValueReader mismatch(Schema written, DataType type, String field) {
    String text = "is written as " + AvroTypes.describe(written) + ", and the column is " + type.sql();
    add(field, text, "declare the column as " + AvroTypes.suggest(written));
    return refusing(branches > 0 ? Reason.WRONG_TYPE : Reason.SCHEMA_INCOMPATIBLE, "field '" + field + "' " + text);
  }

  /** Notes a column that is not written at all. */
  ValueReader missing(String field) {
    add(field, "is not written", "give it a default, or declare it nullable");
    return refusing(Reason.MISSING_FIELD, "field '" + field + "' is missing");
  }

  private void add(String field, String text, String hint) {
    problems.add(new Problem(field, text, hint, branches > 0));
  }

  private static String last(String field) {
    return field.substring(field.lastIndexOf('.') + 1);
  }

  private static ValueReader refusing(Reason reason, String text) {
    return new ValueReader() {
      @Override public Object read(AvroInput in) throws BadRecord {
        throw new BadRecord(reason, text);
      }

      @Override public void read(AvroInput in, UnsafeRowWriter row, int i) throws BadRecord {
        read(in);
      }
    };
  }

  private ValueReader array(Schema written, ArrayType type, String field) {
    ValueReader element = of(written.getElementType(), type.elementType(), type.containsNull(), field + "[]");
    return in -> {
      var out = new ArrayList<Object>();
      in.blocks(each -> out.add(element.read(each)));
      return new GenericArrayData(out.toArray());
    };
  }

  private ValueReader map(Schema written, MapType type, String field) {
    ValueReader value = of(written.getValueType(), type.valueType(), type.valueContainsNull(), field + "[]");
    return in -> {
      var out = new LinkedHashMap<UTF8String, Object>();
      in.blocks(each -> {
        UTF8String key = TextReaders.text(each, field);
        out.put(key, value.read(each));
      });
      return new ArrayBasedMapData(
          new GenericArrayData(out.keySet().toArray()), new GenericArrayData(out.values().toArray()));
    };
  }

  /** Gives one value, and reads nothing. */
  record Constant(Object value, DataType type) implements ValueReader {
    @Override public Object read(AvroInput in) {
      return value;
    }

    @Override public void read(AvroInput in, UnsafeRowWriter row, int i) {
      if (value == null) row.setNullAt(i);
      else if (value instanceof Long v) row.write(i, v);
      else if (value instanceof Integer v) row.write(i, v);
      else if (value instanceof Short v) row.write(i, v);
      else if (value instanceof Byte v) row.write(i, v);
      else if (value instanceof Double v) row.write(i, v);
      else if (value instanceof Float v) row.write(i, v);
      else if (value instanceof Boolean v) row.write(i, v);
      else if (value instanceof UTF8String v) row.write(i, v);
      else row.write(i, (byte[]) value);
    }
  }

  /** Returns the kind of a logical type that the avro jar knows, or null. */
  static LogicalTypes.Decimal decimal(Schema written) {
    return written.getLogicalType() instanceof LogicalTypes.Decimal d ? d : null;
  }
}
