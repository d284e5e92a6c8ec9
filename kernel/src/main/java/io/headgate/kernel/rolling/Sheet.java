package io.headgate.kernel.rolling;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.Serializable;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * All that the files of an output are made by, besides their rows. It is stored with the rows: those that one release or one
 * flow has staged may be published by the next.
 *
 * @param format the format's {@code type} and options, as JSON
 * @param compression of the files: none, gzip, zstd or snappy
 * @param schema the columns of packed rows, as Spark's JSON; null for a format of lines, whose rows are staged encoded
 * @param header the first line of each file; null for none
 */
public record Sheet(String format, String compression, String schema, String header) implements Serializable {
  private static final ObjectMapper JSON = new ObjectMapper();

  /** The rows of an output that only its address is known of: JSON lines. */
  static final Sheet LINES = new Sheet("{\"type\":\"json\"}", "none", null, null);

  /** Returns the name of the format. */
  public String type() {
    return options().path("type").asText();
  }

  JsonNode options() {
    return parse(format);
  }

  /** Returns whether rows are staged packed, and not as lines. */
  public boolean isPacked() {
    return schema != null;
  }

  StructType columns() {
    return (StructType) DataType.fromJson(schema);
  }

  /** Returns the end of the names of files, which tells their format and compression. */
  String ending() {
    String type = type();
    if (isPacked()) return "." + type;
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
    return JSON.createObjectNode().put("format", format).put("compression", compression).put("schema", schema).put("header", header);
  }

  static Sheet of(JsonNode json) {
    return new Sheet(json.get("format").asText(), json.get("compression").asText(), text(json, "schema"), text(json, "header"));
  }

  private static String text(JsonNode json, String name) {
    return json.hasNonNull(name) ? json.get(name).asText() : null;
  }

  private static JsonNode parse(String json) {
    try {
      return JSON.readTree(json);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("not a format: " + json, e);
    }
  }
}
