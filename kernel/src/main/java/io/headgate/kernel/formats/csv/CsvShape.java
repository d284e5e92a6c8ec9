package io.headgate.kernel.formats.csv;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * The form of records of CSV.
 *
 * @param nulls the text that means null where it is not in quotes
 * @param columns the names of the fields in their order; empty for those of the schema
 */
public record CsvShape(byte delimiter, byte quote, byte[] nulls, List<String> columns) implements Serializable {
  public static CsvShape of(JsonNode format) {
    var columns = new ArrayList<String>();
    for (JsonNode column : format.path("columns")) columns.add(column.asText());
    return new CsvShape(
        (byte) format.path("delimiter").asText(",").charAt(0), (byte) format.path("quote").asText("\"").charAt(0),
        format.path("nulls").asText("").getBytes(StandardCharsets.UTF_8), List.copyOf(columns));
  }

  List<String> columnsOr(List<String> names) {
    return columns.isEmpty() ? names : columns;
  }
}
