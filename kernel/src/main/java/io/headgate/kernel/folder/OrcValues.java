package io.headgate.kernel.folder;

import java.io.Serializable;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MapColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** The types and values of ORC as Spark has them. */
final class OrcValues {
  private static final Object[] NO_VALUES = new Object[0];

  /** Returns a value of a vector, null where there is none. */
  interface Getter extends Serializable {
    Object get(ColumnVector from, int at);
  }

  private OrcValues() {}

  static StructType schema(TypeDescription type) {
    if (type.getCategory() != TypeDescription.Category.STRUCT)
      throw new IllegalArgumentException("its rows are " + type + ", and no struct");
    return (StructType) typeOf(type);
  }

  private static DataType typeOf(TypeDescription type) {
    return switch (type.getCategory()) {
      case BOOLEAN -> DataTypes.BooleanType;
      case BYTE -> DataTypes.ByteType;
      case SHORT -> DataTypes.ShortType;
      case INT -> DataTypes.IntegerType;
      case LONG -> DataTypes.LongType;
      case FLOAT -> DataTypes.FloatType;
      case DOUBLE -> DataTypes.DoubleType;
      case STRING, CHAR, VARCHAR -> DataTypes.StringType;
      case BINARY -> DataTypes.BinaryType;
      case DATE -> DataTypes.DateType;
      case TIMESTAMP -> DataTypes.TimestampNTZType;
      case TIMESTAMP_INSTANT -> DataTypes.TimestampType;
      case DECIMAL -> DataTypes.createDecimalType(type.getPrecision(), type.getScale());
      case LIST -> DataTypes.createArrayType(typeOf(type.getChildren().get(0)), true);
      case MAP -> DataTypes.createMapType(typeOf(type.getChildren().get(0)), typeOf(type.getChildren().get(1)), true);
      case STRUCT -> {
        var out = new StructType();
        for (int i = 0; i < type.getFieldNames().size(); i++)
          out = out.add(type.getFieldNames().get(i), typeOf(type.getChildren().get(i)), true);
        yield out;
      }
      // A column that nobody declares may have any type.
      default -> DataTypes.NullType;
    };
  }

  /** Returns a type of a file with the fields of structs that are to be read, in the order of those. */
  static TypeDescription chosen(TypeDescription file, DataType columns) {
    if (columns instanceof StructType struct) {
      TypeDescription out = TypeDescription.createStruct();
      for (StructField field : struct.fields()) {
        int at = file == null ? -1 : file.getFieldNames().indexOf(field.name());
        out.addField(field.name(), at < 0 ? missing(field.dataType()) : chosen(file.getChildren().get(at), field.dataType()));
      }
      return out;
    }
    if (columns instanceof ArrayType array) return TypeDescription.createList(chosen(file.getChildren().get(0), array.elementType()));
    if (columns instanceof MapType map)
      return TypeDescription.createMap(
          chosen(file.getChildren().get(0), map.keyType()), chosen(file.getChildren().get(1), map.valueType()));
    return file.clone();
  }

  /** A field that the file does not have is null, of whatever type. */
  private static TypeDescription missing(DataType type) {
    if (type instanceof StructType struct) {
      TypeDescription out = TypeDescription.createStruct();
      for (StructField field : struct.fields()) out.addField(field.name(), missing(field.dataType()));
      return out;
    }
    return TypeDescription.createString();
  }

  static Getter getter(TypeDescription type) {
    Getter inner = value(type);
    return (from, at) -> {
      int place = from.isRepeating ? 0 : at;
      return !from.noNulls && from.isNull[place] ? null : inner.get(from, place);
    };
  }

  private static Getter value(TypeDescription type) {
    return switch (type.getCategory()) {
      case BOOLEAN -> (from, at) -> number(from, at) != 0;
      case BYTE -> (from, at) -> (byte) number(from, at);
      case SHORT -> (from, at) -> (short) number(from, at);
      case INT, DATE -> (from, at) -> (int) number(from, at);
      case LONG -> (from, at) -> number(from, at);
      case FLOAT -> (from, at) -> (float) ((DoubleColumnVector) from).vector[at];
      case DOUBLE -> (from, at) -> ((DoubleColumnVector) from).vector[at];
      case STRING, CHAR, VARCHAR -> (from, at) -> UTF8String.fromBytes(bytes(from, at));
      case BINARY -> OrcValues::bytes;
      case TIMESTAMP, TIMESTAMP_INSTANT -> (from, at) -> micros((TimestampColumnVector) from, at);
      case DECIMAL -> (from, at) -> Decimal.apply(
          ((DecimalColumnVector) from).vector[at].getHiveDecimal().bigDecimalValue(), type.getPrecision(), type.getScale());
      case LIST -> list(getter(type.getChildren().get(0)));
      case MAP -> map(getter(type.getChildren().get(0)), getter(type.getChildren().get(1)));
      case STRUCT -> struct(type.getChildren().stream().map(OrcValues::getter).toList());
      default -> throw new IllegalArgumentException("no values of type " + type);
    };
  }

  private static long number(ColumnVector from, int at) {
    return ((LongColumnVector) from).vector[at];
  }

  private static byte[] bytes(ColumnVector from, int at) {
    var vector = (BytesColumnVector) from;
    return Arrays.copyOfRange(vector.vector[at], vector.start[at], vector.start[at] + vector.length[at]);
  }

  private static long micros(TimestampColumnVector from, int at) {
    return Math.floorDiv(from.time[at], 1000L) * 1_000_000L + from.nanos[at] / 1000;
  }

  private static Getter list(Getter element) {
    return (from, at) -> {
      var vector = (ListColumnVector) from;
      return array(element, vector.child, vector.offsets[at], vector.lengths[at]);
    };
  }

  private static GenericArrayData array(Getter element, ColumnVector from, long first, long length) {
    Object[] values = length == 0 ? NO_VALUES : new Object[(int) length];
    for (int i = 0; i < values.length; i++) values[i] = element.get(from, (int) first + i);
    return new GenericArrayData(values);
  }

  private static Getter map(Getter key, Getter value) {
    return (from, at) -> {
      var vector = (MapColumnVector) from;
      return new ArrayBasedMapData(
          array(key, vector.keys, vector.offsets[at], vector.lengths[at]),
          array(value, vector.values, vector.offsets[at], vector.lengths[at]));
    };
  }

  private static Getter struct(List<Getter> fields) {
    return (from, at) -> {
      var vector = (StructColumnVector) from;
      Object[] values = new Object[fields.size()];
      for (int i = 0; i < values.length; i++) values[i] = fields.get(i).get(vector.fields[i], at);
      return new GenericInternalRow(values);
    };
  }
}
