package io.headgate.kernel.rolling;

import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MapColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MultiValuedColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.*;

/** Puts the values of a column into ORC's vectors. */
final class OrcColumn {
  private interface Values {
    void put(int at, SpecializedGetters row, int i);
  }

  private final ColumnVector vector;
  private final Values values;

  private OrcColumn(ColumnVector vector, Values values) {
    this.vector = vector;
    this.values = values;
  }

  /** Returns ORC's type for one of Spark's. */
  static TypeDescription type(DataType type) {
    if (type instanceof BooleanType) return TypeDescription.createBoolean();
    if (type instanceof ByteType) return TypeDescription.createByte();
    if (type instanceof ShortType) return TypeDescription.createShort();
    if (type instanceof IntegerType) return TypeDescription.createInt();
    if (type instanceof LongType) return TypeDescription.createLong();
    if (type instanceof FloatType) return TypeDescription.createFloat();
    if (type instanceof DoubleType) return TypeDescription.createDouble();
    if (type instanceof StringType) return TypeDescription.createString();
    if (type instanceof BinaryType) return TypeDescription.createBinary();
    if (type instanceof DateType) return TypeDescription.createDate();
    if (type instanceof TimestampType) return TypeDescription.createTimestampInstant();
    if (type instanceof DecimalType d) return TypeDescription.createDecimal().withScale(d.scale()).withPrecision(d.precision());
    if (type instanceof ArrayType a) return TypeDescription.createList(type(a.elementType()));
    if (type instanceof MapType m) return TypeDescription.createMap(type(m.keyType()), type(m.valueType()));
    if (type instanceof StructType s) {
      TypeDescription struct = TypeDescription.createStruct();
      for (StructField field : s.fields()) struct.addField(field.name(), type(field.dataType()));
      return struct;
    }
    throw new IllegalArgumentException("no ORC form for type " + type.sql());
  }

  static OrcColumn of(DataType type, ColumnVector vector) {
    return new OrcColumn(vector, values(type, vector));
  }

  void put(int at, SpecializedGetters row, int i) {
    vector.isNull[at] = row.isNullAt(i);
    if (vector.isNull[at]) vector.noNulls = false;
    else values.put(at, row, i);
  }

  private static Values values(DataType type, ColumnVector to) {
    if (to instanceof TimestampColumnVector v) return instants(v);
    if (to instanceof LongColumnVector v) return integers(type, v);
    if (to instanceof DoubleColumnVector v) {
      if (type instanceof FloatType) return (at, row, i) -> v.vector[at] = row.getFloat(i);
      return (at, row, i) -> v.vector[at] = row.getDouble(i);
    }
    if (to instanceof BytesColumnVector v) {
      if (type instanceof BinaryType) return (at, row, i) -> v.setVal(at, row.getBinary(i));
      return (at, row, i) -> v.setVal(at, row.getUTF8String(i).getBytes());
    }
    if (to instanceof DecimalColumnVector v && type instanceof DecimalType d)
      return (at, row, i) -> v.set(at, HiveDecimal.create(row.getDecimal(i, d.precision(), d.scale()).toJavaBigDecimal()));
    if (to instanceof StructColumnVector v) return struct((StructType) type, v);
    if (to instanceof ListColumnVector v) return list((ArrayType) type, v);
    return map((MapType) type, (MapColumnVector) to);
  }

  private static Values integers(DataType type, LongColumnVector to) {
    if (type instanceof BooleanType) return (at, row, i) -> to.vector[at] = row.getBoolean(i) ? 1 : 0;
    if (type instanceof ByteType) return (at, row, i) -> to.vector[at] = row.getByte(i);
    if (type instanceof ShortType) return (at, row, i) -> to.vector[at] = row.getShort(i);
    if (type instanceof LongType) return (at, row, i) -> to.vector[at] = row.getLong(i);
    return (at, row, i) -> to.vector[at] = row.getInt(i);
  }

  private static Values instants(TimestampColumnVector to) {
    to.setIsUTC(true);
    return (at, row, i) -> {
      long micros = row.getLong(i);
      // The vector has the milliseconds of a time, and in the nanoseconds all below a second.
      to.time[at] = Math.floorDiv(micros, 1000L);
      to.nanos[at] = (int) Math.floorMod(micros, 1_000_000L) * 1000;
    };
  }

  private static Values struct(StructType type, StructColumnVector to) {
    StructField[] fields = type.fields();
    var columns = new OrcColumn[fields.length];
    for (int k = 0; k < columns.length; k++) columns[k] = of(fields[k].dataType(), to.fields[k]);
    return (at, row, i) -> {
      InternalRow struct = row.getStruct(i, columns.length);
      for (int k = 0; k < columns.length; k++) columns[k].put(at, struct, k);
    };
  }

  private static Values list(ArrayType type, ListColumnVector to) {
    OrcColumn element = of(type.elementType(), to.child);
    return (at, row, i) -> {
      ArrayData array = row.getArray(i);
      int from = begin(to, at, array.numElements());
      to.child.ensureSize(to.childCount, true);
      for (int k = 0; k < array.numElements(); k++) element.put(from + k, array, k);
    };
  }

  private static Values map(MapType type, MapColumnVector to) {
    OrcColumn key = of(type.keyType(), to.keys);
    OrcColumn value = of(type.valueType(), to.values);
    return (at, row, i) -> {
      MapData map = row.getMap(i);
      int from = begin(to, at, map.numElements());
      to.keys.ensureSize(to.childCount, true);
      to.values.ensureSize(to.childCount, true);
      for (int k = 0; k < map.numElements(); k++) {
        key.put(from + k, map.keyArray(), k);
        value.put(from + k, map.valueArray(), k);
      }
    };
  }

  /** Makes room for the values of a list or map behind those of the rows before; returns where they begin. */
  private static int begin(MultiValuedColumnVector to, int at, int count) {
    to.offsets[at] = to.childCount;
    to.lengths[at] = count;
    to.childCount += count;
    return (int) to.offsets[at];
  }
}
