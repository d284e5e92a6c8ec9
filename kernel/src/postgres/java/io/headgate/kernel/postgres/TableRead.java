package io.headgate.kernel.postgres;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.stream.Collectors;

/**
 * How a table, or a query, is read: its rows as JSON, by key.
 *
 * @param from what stands behind FROM; {@code columns} those to read; {@code key} those that tell rows apart
 */
record TableRead(String name, String from, List<String> columns, List<String> key) {
  /** @param json {@code schema}, {@code table} and {@code query} or null; {@code columns} and {@code key} lists of names */
  static TableRead parse(String json, String columns, String key) {
    try {
      var mapper = new ObjectMapper();
      JsonNode table = mapper.readTree(json);
      boolean query = table.hasNonNull("query");
      String name = query ? "the query" : "table " + table.get("schema").asText() + "." + table.get("table").asText();
      String from = query ? "(" + table.get("query").asText() + ") AS q" : Sql.table(table);
      return new TableRead(name, from, names(mapper.readTree(columns)), names(mapper.readTree(key)));
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("not the description of a table: " + json);
    }
  }

  private static List<String> names(JsonNode list) {
    var out = new ArrayList<String>();
    for (JsonNode name : list) out.add(name.asText());
    return out;
  }

  /** Returns the statement that reads it: the texts of the key's columns, then the row; throws where columns are missing. */
  String statement(Connection connection) throws SQLException {
    var types = new TreeMap<String, String>();
    try (PreparedStatement look = connection.prepareStatement("SELECT * FROM " + from + " LIMIT 0")) {
      ResultSetMetaData found = look.getMetaData();
      for (int i = 1; i <= found.getColumnCount(); i++) types.put(found.getColumnName(i), found.getColumnTypeName(i));
    }
    var list = new ArrayList<String>();
    for (String column : columns) list.add(expression(find(column, types), types) + " AS " + Sql.quote(column));
    String keys = key.stream().map(each -> "r." + Sql.quote(each) + "::text").collect(Collectors.joining(", "));
    String order = key.stream().map(each -> "r." + Sql.quote(each) + "::text COLLATE \"C\" NULLS FIRST").collect(Collectors.joining(", "));
    return "SELECT " + keys + ", row_to_json(r)::text FROM (SELECT " + String.join(", ", list) + " FROM " + from + ") AS r ORDER BY "
        + order + ", row_to_json(r)::text COLLATE \"C\"";
  }

  private String find(String column, TreeMap<String, String> types) {
    if (types.containsKey(column)) return column;
    var alike = types.keySet().stream().filter(each -> each.equalsIgnoreCase(column)).toList();
    if (alike.size() == 1) return alike.get(0);
    throw new PostgresFailure(PostgresFailure.TABLE_MISMATCH,
        "cannot read " + name + ": it has no column for '" + column + "', only " + String.join(", ", types.keySet()));
  }

  /** Returns a column in the form that records have: bytes in Base64, times in UTC. */
  private static String expression(String column, TreeMap<String, String> types) {
    String name = Sql.quote(column);
    return switch (types.get(column)) {
      case "bytea" -> "translate(encode(" + name + ", 'base64'), E'\\n', '')";
      case "timestamp" -> name + " AT TIME ZONE 'UTC'";
      // It may have line breaks.
      case "json" -> name + "::jsonb";
      default -> name;
    };
  }
}
