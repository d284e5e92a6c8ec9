package io.headgate.kernel.plan;

import io.headgate.kernel.json.RowEncoder;
import io.headgate.kernel.rows.SegmentedRow;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;

/** Leaves rows packed, for files whose format has columns; each such file is made of many rows. */
final class PackedEncoder implements RowEncoder {
  /** Null where the rows are in one segment as they are to be written. */
  private final RowProgram columns;

  PackedEncoder(RowProgram columns) {
    this.columns = columns;
  }

  /** Returns whether files with columns can hold values of a type. */
  static boolean writes(DataType type) {
    if (type instanceof ArrayType a) return writes(a.elementType());
    if (type instanceof MapType m) return writes(m.keyType()) && writes(m.valueType());
    if (type instanceof StructType s) {
      for (StructField field : s.fields()) if (!writes(field.dataType())) return false;
      return s.length() > 0;
    }
    return type instanceof NumericType || type instanceof BooleanType || type instanceof StringType || type instanceof BinaryType
        || type instanceof DateType || type instanceof TimestampType;
  }

  @Override public byte[] encode(SegmentedRow row) {
    return (columns == null ? row.segment(0) : columns.apply(row)).getBytes();
  }
}
