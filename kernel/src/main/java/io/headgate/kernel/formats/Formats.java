package io.headgate.kernel.formats;

import com.fasterxml.jackson.databind.JsonNode;
import io.headgate.kernel.json.JsonDecoder;
import org.apache.spark.sql.types.StructType;

/** The decoders of all formats, by the name of the format. */
public final class Formats {
  private Formats() {}

  /**
   * Returns the decoder of a source.
   *
   * @param format the format's {@code type} and options
   * @param schema the columns of the rows
   * @param table whether a record may end its key's row
   */
  public static RecordDecoder decoder(JsonNode format, StructType schema, boolean table) {
    String type = format.path("type").asText("json");
    return switch (type) {
      case "json" -> new JsonDecoder(schema, table);
      case "text" -> new TextDecoder();
      default -> throw new IllegalArgumentException("no decoder for format " + type);
    };
  }
}
