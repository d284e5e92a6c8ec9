package io.headgate.kernel.rolling;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.Serializable;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * All that the files of an output are made by, besides their rows. It is stored with the rows: those that one release or one
 * flow has staged may be published by the next.
 *
 * @param type the name of the format
 * @param compression of the files: none, gzip, zstd or snappy
 * @param schema of formats that need one, as JSON: Spark's of packed rows, Avro's own; null for a format of lines
 * @param header the first line of each file; null for none
 */
public record Sheet(String type, String compression, String schema, String header) implements Serializable {
  private static final ObjectMapper JSON = new ObjectMapper();

  /** The rows of an output that only its address is known of: JSON lines. */
  static final Sheet LINES = new Sheet("json", "none", null, null);

  /** Returns whether rows of a format are staged packed, and not encoded: its files have columns. */
  public static boolean isPacked(String type) {
    return type.equals("parquet") || type.equals("orc");
  }

  StructType columns() {
    return (StructType) DataType.fromJson(schema);
  }

  /** Returns the end of the names of files, which tells their format and compression. */
  String ending() {
    if (schema != null) return "." + type;
    String lines = switch (type) {
      case "json" -> ".jsonl";
      case "text" -> ".txt";
      default -> "." + type;
    };
    return lines + switch (compression) {
      case "gzip" -> ".gz";
      case "zstd" -> ".zst";
      case "snappy" -> ".snappy";
      default -> "";
    };
  }

  JsonNode toJson() {
    return JSON.createObjectNode().put("type", type).put("compression", compression).put("schema", schema).put("header", header);
  }

  static Sheet of(JsonNode json) {
    return new Sheet(json.get("type").asText(), json.get("compression").asText(), text(json, "schema"), text(json, "header"));
  }

  private static String text(JsonNode json, String name) {
    return json.hasNonNull(name) ? json.get(name).asText() : null;
  }
}
