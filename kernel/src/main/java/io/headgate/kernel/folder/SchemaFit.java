package io.headgate.kernel.folder;

import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import java.util.Arrays;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/**
 * Compares the columns of a file with the declared ones: types are the same, or every value of the file's type is also one of
 * the declared type.
 */
final class SchemaFit {
  private SchemaFit() {}

  /**
   * Returns what is to be read of a file: the declared columns that it has, in their declared order, with the types of the file.
   *
   * @throws BadRecord BAD_FILE if a column does not fit; columns that are missing are not looked at
   */
  static StructType common(StructType declared, StructType file) throws BadRecord {
    var out = new StructType();
    for (StructField field : declared.fields()) {
      StructField found = find(file, field.name());
      if (found != null) out = out.add(field.name(), read(field.dataType(), found.dataType(), field.name()), true);
    }
    return out;
  }

  private static StructField find(StructType file, String name) throws BadRecord {
    StructField out = null;
    for (StructField each : file.fields())
      if (each.name().equals(name)) {
        if (out != null) throw new BadRecord(Reason.BAD_FILE, "the file has column '" + name + "' twice");
        out = each;
      }
    return out;
  }

  /** Returns the type to read: that of the file, with the declared fields of structs. */
  private static DataType read(DataType declared, DataType file, String name) throws BadRecord {
    if (declared instanceof StructType wanted && file instanceof StructType found) return fields(wanted, found, name);
    if (declared instanceof ArrayType wanted && file instanceof ArrayType found)
      return new ArrayType(read(wanted.elementType(), found.elementType(), name + "[]"), true);
    if (declared instanceof MapType wanted && file instanceof MapType found)
      return new MapType(
          read(wanted.keyType(), found.keyType(), name + "{}"), read(wanted.valueType(), found.valueType(), name + "{}"), true);
    if (declared.equals(file) || widens(file, declared)) return file;
    throw new BadRecord(Reason.BAD_FILE,
        "column '" + name + "' is " + file.sql() + " in the file, and " + declared.sql() + " in the schema");
  }

  private static StructType fields(StructType declared, StructType file, String name) throws BadRecord {
    var out = new StructType();
    for (StructField field : declared.fields()) {
      StructField found = find(file, field.name());
      if (found == null && !field.nullable())
        throw new BadRecord(Reason.BAD_FILE, "column '" + name + "." + field.name() + "' is missing in the file");
      // A reader gives null for a field that the file does not have.
      DataType type = found == null
          ? field.dataType() : read(field.dataType(), found.dataType(), name + "." + field.name());
      out = out.add(field.name(), type, true);
    }
    if (Arrays.stream(declared.fieldNames()).noneMatch(each -> Arrays.asList(file.fieldNames()).contains(each)))
      throw new BadRecord(Reason.BAD_FILE, "struct '" + name + "' has none of the fields of the schema in the file");
    return out;
  }

  private static boolean widens(DataType from, DataType to) {
    int digits = digits(from);
    if (digits > 0) {
      if (to instanceof DecimalType decimal) return decimal.precision() - decimal.scale() >= digits;
      // A double holds every whole number of 53 bits.
      if (to instanceof DoubleType) return !(from instanceof LongType);
      return digits(to) > digits;
    }
    if (from instanceof FloatType) return to instanceof DoubleType;
    if (from instanceof DecimalType a && to instanceof DecimalType b)
      return b.scale() >= a.scale() && b.precision() - b.scale() >= a.precision() - a.scale();
    // A time without a zone is one of UTC, as in JSON.
    return from instanceof TimestampNTZType && to instanceof TimestampType;
  }

  /** Returns the decimal digits of a whole number's type, 0 for another type. */
  private static int digits(DataType type) {
    if (type instanceof ByteType) return 3;
    if (type instanceof ShortType) return 5;
    if (type instanceof IntegerType) return 10;
    return type instanceof LongType ? 19 : 0;
  }
}
