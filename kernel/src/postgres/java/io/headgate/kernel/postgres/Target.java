package io.headgate.kernel.postgres;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.headgate.kernel.sink.LogSpec;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;

/**
 * A table that an output is written to, as the flow names it.
 *
 * @param key the columns whose values find the row to replace; empty where every row is a new one
 * @param hasMessageKey whether the message key of a row is the text of the only key column, so that it can name a row to delete
 */
record Target(String schema, String table, List<String> key, boolean hasMessageKey, LogSpec.Rows rows) implements Serializable {
  /** @param json {@code schema}, {@code table} and {@code key}, a list of columns or null for the output's own */
  static Target parse(String json, LogSpec.Rows rows) {
    JsonNode node;
    try {
      node = new ObjectMapper().readTree(json);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("not the description of a table: " + json);
    }
    if (rows == null)
      throw new PostgresFailure(PostgresFailure.TABLE_MISMATCH,
          "cannot write to table " + node.get("schema").asText() + "." + node.get("table").asText()
              + ": its rows must be objects with columns, in the format json");
    var key = new ArrayList<String>();
    for (JsonNode column : node.path("key")) key.add(column.asText());
    if (key.isEmpty() && rows.key() != null) key.add(rows.key());
    boolean hasMessageKey = key.size() == 1 && key.get(0).equals(rows.key());
    return new Target(node.get("schema").asText(), node.get("table").asText(), key, hasMessageKey, rows);
  }

  /** Returns the name for messages, and in the table of epochs. */
  String name() {
    return schema + "." + table;
  }

  String quoted() {
    return Sql.quote(schema) + "." + Sql.quote(table);
  }
}
