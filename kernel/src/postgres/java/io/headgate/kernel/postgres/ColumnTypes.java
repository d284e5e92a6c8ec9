package io.headgate.kernel.postgres;

import org.apache.spark.sql.types.*;

/** Which types of a table hold the values of a row exactly, and how they get there. */
final class ColumnTypes {
  /** A column of a table, as the catalog has it. */
  record Known(String name, String type, String full, char kind, int modifier, boolean required, boolean generated) {
    /** Returns the most digits of a numeric; 0 for no limit. */
    int precision() {
      return modifier < 0 ? 0 : (modifier - 4) >> 16 & 0xffff;
    }

    int scale() {
      return modifier < 0 ? 0 : ((modifier - 4 & 0x7ff) ^ 1024) - 1024;
    }
  }

  /** The decimals of a second that Spark has. */
  private static final int MICROS = 6;

  private ColumnTypes() {}

  /** Returns the type in which a value is read out of JSON, without loss; null for one that no table holds. */
  static String parsed(DataType type) {
    if (type instanceof ByteType || type instanceof ShortType) return "int2";
    if (type instanceof IntegerType) return "int4";
    if (type instanceof LongType) return "int8";
    if (type instanceof FloatType) return "float4";
    if (type instanceof DoubleType) return "float8";
    if (type instanceof BooleanType) return "bool";
    if (type instanceof DecimalType) return "numeric";
    if (type instanceof DateType) return "date";
    if (type instanceof TimestampType) return "timestamptz";
    // Bytes are Base64 in JSON.
    if (type instanceof StringType || type instanceof BinaryType) return "text";
    if (type instanceof StructType || type instanceof MapType) return "json";
    return type instanceof ArrayType ? "json" : null;
  }

  /** Returns the expression that gives a column its value; null where the column cannot hold every value of the type. */
  static String expression(String parsed, DataType type, Known column) {
    String to = column.type;
    if (to.equals("json") || to.equals("jsonb")) return type instanceof BinaryType ? null : document(parsed, type, to);
    if (type instanceof ArrayType a) return array(parsed, a, column);
    if (type instanceof StringType) return string(parsed, column);
    if (type instanceof BinaryType) return to.equals("bytea") ? "decode(" + parsed + ", 'base64')" : null;
    return fits(type, column) ? plain(parsed, type, to) : null;
  }

  private static String plain(String parsed, DataType type, String to) {
    // A column without a zone has the time of UTC.
    return type instanceof TimestampType && to.equals("timestamp") ? "(" + parsed + " AT TIME ZONE 'UTC')" : parsed;
  }

  private static String document(String parsed, DataType type, String to) {
    // A text is a document of its own; other values become one.
    boolean ready = type instanceof StringType || type instanceof StructType || type instanceof MapType || type instanceof ArrayType;
    return ready ? parsed + "::" + to : "to_json(" + parsed + ")::" + to;
  }

  private static String string(String parsed, Known column) {
    return switch (column.type) {
      // Assigned, a text that is too long is refused; cast, it would be cut.
      case "text", "varchar", "bpchar" -> parsed;
      case "uuid" -> parsed + "::uuid";
      default -> column.kind == 'e' ? parsed + "::" + column.full : null;
    };
  }

  private static String array(String parsed, ArrayType type, Known column) {
    DataType of = type.elementType();
    if (of instanceof ArrayType || of instanceof MapType || of instanceof StructType || of instanceof BinaryType) return null;
    if (!column.type.startsWith("_")) return null;
    var element = new Known(column.name, column.type.substring(1), column.full, 'b', column.modifier, false, false);
    boolean text = of instanceof StringType && (element.type.equals("text") || element.type.equals("varchar"));
    if (!text && !(fits(of, element) && !(of instanceof StringType))) return null;
    String value = plain("e::" + parsed(of), of, element.type);
    // A null is no array, and an empty one stays one.
    return "CASE WHEN " + parsed + " IS NOT NULL AND json_typeof(" + parsed + ") = 'array' THEN ARRAY(SELECT " + value
        + " FROM json_array_elements_text(" + parsed + ") WITH ORDINALITY AS elements(e, place) ORDER BY place) END";
  }

  /** Returns whether every value of a type is one of the column's type. */
  private static boolean fits(DataType type, Known column) {
    String to = column.type;
    if (type instanceof BooleanType) return to.equals("bool");
    if (type instanceof DateType) return to.equals("date");
    // One with fewer decimals would round.
    if (type instanceof TimestampType)
      return (to.equals("timestamptz") || to.equals("timestamp")) && (column.modifier < 0 || column.modifier == MICROS);
    if (type instanceof FloatType) return to.equals("float4") || to.equals("float8");
    if (type instanceof DoubleType) return to.equals("float8");
    if (type instanceof ByteType || type instanceof ShortType)
      return to.equals("int2") || to.equals("int4") || to.equals("int8") || digits(column, 5, 0);
    if (type instanceof IntegerType) return to.equals("int4") || to.equals("int8") || digits(column, 10, 0);
    if (type instanceof LongType) return to.equals("int8") || digits(column, 19, 0);
    return type instanceof DecimalType d && digits(column, d.precision() - d.scale(), d.scale());
  }

  private static boolean digits(Known column, int before, int behind) {
    if (!column.type.equals("numeric")) return false;
    return column.modifier < 0 || column.scale() >= behind && column.precision() - column.scale() >= before;
  }

  /** Returns the types that would fit, for messages. */
  static String wanted(DataType type) {
    if (type instanceof ByteType || type instanceof ShortType) return "smallint, integer or bigint";
    if (type instanceof IntegerType) return "integer or bigint";
    if (type instanceof LongType) return "bigint";
    if (type instanceof FloatType) return "real or double precision";
    if (type instanceof DoubleType) return "double precision";
    if (type instanceof BooleanType) return "boolean";
    if (type instanceof DecimalType d) return "numeric(" + d.precision() + "," + d.scale() + ")";
    if (type instanceof DateType) return "date";
    if (type instanceof TimestampType) return "timestamp with time zone";
    if (type instanceof StringType) return "text, varchar, uuid, jsonb or an enum";
    if (type instanceof BinaryType) return "bytea";
    return type instanceof ArrayType ? "an array or jsonb" : "jsonb";
  }
}
