package io.headgate.kernel.postgres;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Collection;
import java.util.stream.Collectors;

/** Names as SQL wants them. */
final class Sql {
  private Sql() {}

  static String quote(String name) {
    return '"' + name.replace("\"", "\"\"") + '"';
  }

  static String quoteAll(Collection<String> names) {
    return names.stream().map(Sql::quote).collect(Collectors.joining(", "));
  }

  /** @param table {@code schema} and {@code table} */
  static String table(JsonNode table) {
    return quote(table.get("schema").asText()) + "." + quote(table.get("table").asText());
  }

  static String text(String value) {
    return "'" + value.replace("'", "''") + "'";
  }
}
