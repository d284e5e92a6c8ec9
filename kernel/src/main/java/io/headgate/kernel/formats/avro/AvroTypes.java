package io.headgate.kernel.formats.avro;

import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;

/** Avro's types in words. */
final class AvroTypes {
  private AvroTypes() {}

  /** Returns the name of a logical type; empty if there is none, or one that does not fit what is below it. */
  static String logical(Schema schema) {
    return schema.getLogicalType() == null ? "" : schema.getLogicalType().getName();
  }

  static String describe(Schema schema) {
    String name = switch (schema.getType()) {
      case RECORD, ENUM, FIXED -> schema.getType().getName() + " " + schema.getFullName();
      default -> schema.getType().getName();
    };
    if (schema.getLogicalType() instanceof LogicalTypes.Decimal d)
      return name + " (decimal(" + d.getPrecision() + "," + d.getScale() + "))";
    return logical(schema).isEmpty() ? name : name + " (" + logical(schema) + ")";
  }

  /** Returns the type of a column that fits, as DDL has it. */
  static String suggest(Schema schema) {
    String logical = logical(schema);
    if (schema.getLogicalType() instanceof LogicalTypes.Decimal d)
      return "DECIMAL(" + Math.min(d.getPrecision(), 38) + "," + Math.min(d.getScale(), 38) + ")";
    return switch (schema.getType()) {
      case BOOLEAN -> "BOOLEAN";
      case INT -> logical.equals("date") ? "DATE" : "INT";
      case LONG -> logical.contains("timestamp") ? "TIMESTAMP" : "BIGINT";
      case FLOAT -> "FLOAT";
      case DOUBLE -> "DOUBLE";
      case STRING, ENUM -> "STRING";
      case BYTES -> "BINARY";
      case FIXED -> logical.equals("uuid") ? "STRING" : "BINARY";
      case ARRAY -> "ARRAY<" + suggest(schema.getElementType()) + ">";
      case MAP -> "MAP<STRING, " + suggest(schema.getValueType()) + ">";
      case RECORD -> "a STRUCT with its fields";
      case UNION -> schema.getTypes().stream().filter(each -> each.getType() != Schema.Type.NULL).findFirst()
          .map(AvroTypes::suggest).orElse("another type");
      case NULL -> "a nullable type";
    };
  }
}
