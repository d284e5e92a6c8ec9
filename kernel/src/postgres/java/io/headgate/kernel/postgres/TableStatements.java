package io.headgate.kernel.postgres;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/** The statements that write rows to one table; rows come as one JSON array, each value is read by its own type. */
final class TableStatements implements Serializable {
  /** The place of a row among those of a statement; no column of a row has such a name. */
  private static final String PLACE = Sql.quote("$place");

  /**
   * A column that is written.
   *
   * @param field its name in the rows; {@code parsed} the type in which its value is read from JSON
   * @param name its name in the table; {@code expression} what it gets
   * @param type its type; {@code cast} the name of its type for a cast that cuts nothing off
   * @param longest how many characters it holds; -1 for any number
   */
  record Column(String field, String parsed, String name, String expression, String type, String cast, int longest)
      implements Serializable {}

  final Target target;
  private final List<Column> columns;
  private final List<Column> key;
  private final String write;

  TableStatements(Target target, List<Column> columns, List<Column> key) {
    this.target = target;
    this.columns = new ArrayList<>(columns);
    this.key = new ArrayList<>(key);
    write = key.isEmpty() ? insert() : upsert();
  }

  /** Returns the statement that writes the rows of a JSON array, in their order. */
  String write() {
    return write;
  }

  /** Returns the statement that deletes the rows with some keys, an array of texts. */
  String delete() {
    Column column = key.get(0);
    return "DELETE FROM " + target.quoted() + " WHERE " + Sql.quote(column.name()) + " IN (SELECT k::" + column.cast()
        + " FROM unnest(?::text[]) AS k)";
  }

  private String insert() {
    return "INSERT INTO " + into() + " SELECT " + expressions() + " FROM " + rows(columns) + " ORDER BY " + PLACE;
  }

  /** Of several rows with one key the last one counts; what is equal decides the database, as its index does. */
  private String upsert() {
    String by = key.stream().map(Column::expression).collect(Collectors.joining(", "));
    String set = columns.stream().filter(each -> !key.contains(each))
        .map(each -> Sql.quote(each.name()) + " = EXCLUDED." + Sql.quote(each.name())).collect(Collectors.joining(", "));
    return "INSERT INTO " + into() + " SELECT DISTINCT ON (" + by + ") " + expressions() + " FROM " + rows(columns)
        + " ORDER BY " + by + ", " + PLACE + " DESC ON CONFLICT (" + Sql.quoteAll(key.stream().map(Column::name).toList())
        + ") DO " + (set.isEmpty() ? "NOTHING" : "UPDATE SET " + set);
  }

  private String into() {
    return target.quoted() + " (" + Sql.quoteAll(columns.stream().map(Column::name).toList()) + ")";
  }

  private String expressions() {
    return columns.stream().map(Column::expression).collect(Collectors.joining(", "));
  }

  private static String rows(List<Column> columns) {
    String types = columns.stream().map(each -> Sql.quote(each.field()) + " " + each.parsed()).collect(Collectors.joining(", "));
    return "ROWS FROM (json_to_recordset(?::json) AS (" + types + ")) WITH ORDINALITY AS r("
        + Sql.quoteAll(columns.stream().map(Column::field).toList()) + ", " + PLACE + ")";
  }

  /** Returns the columns, to find the one that a row is refused for. */
  List<Column> columns() {
    return columns;
  }

  List<Column> key() {
    return key;
  }

  /** Returns the statement that computes one column of a row, and fails where the row is refused for it. */
  static String probe(Column column) {
    return "SELECT " + column.expression() + " FROM " + rows(List.of(column));
  }

  /** Returns the statement that counts the characters of a column. */
  static String length(Column column) {
    return "SELECT char_length(" + Sql.quote(column.field()) + ") FROM " + rows(List.of(column));
  }
}
