package io.headgate.kernel.postgres;

import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.sql.types.StructField;

/** The columns of a table as its database has them, held against the rows that are to be written. */
final class TableColumns {
  private static final String COLUMNS =
      "SELECT a.attname, t.typname, format_type(a.atttypid, a.atttypmod), t.typtype, a.atttypmod,"
          + " a.attnotnull AND NOT a.atthasdef AND a.attidentity = '', a.attgenerated <> '' OR a.attidentity = 'a'"
          + " FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid"
          + " WHERE a.attrelid = to_regclass(?) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";
  /** Those that a row can conflict with: unique at once, for all rows, over columns without nulls. */
  private static final String KEYS =
      "SELECT array_agg(a.attname::text) FROM pg_index i"
          + " JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)"
          + " WHERE i.indrelid = to_regclass(?) AND i.indisunique AND i.indimmediate AND i.indisvalid"
          + " AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indnkeyatts = i.indnatts"
          + " GROUP BY i.indexrelid HAVING bool_and(a.attnotnull)";

  private final Target target;
  private final Map<String, ColumnTypes.Known> known = new LinkedHashMap<>();

  private TableColumns(Target target) {
    this.target = target;
  }

  /** Returns the statements that write to a table, or throws where its columns do not hold the rows. */
  static TableStatements check(Connection connection, Target target) throws SQLException {
    var table = new TableColumns(target);
    table.read(connection);
    if (table.known.isEmpty())
      throw new PostgresFailure(PostgresFailure.TOPIC_MISSING, "cannot write to table " + target.name() + ": it does not exist");
    var columns = new ArrayList<TableStatements.Column>();
    for (StructField field : target.rows().columns().fields()) columns.add(table.column(field));
    table.checkRequired(columns);
    List<TableStatements.Column> key = table.key(columns);
    if (!key.isEmpty()) table.checkUnique(connection, key);
    return new TableStatements(target, columns, key);
  }

  private void read(Connection connection) throws SQLException {
    try (PreparedStatement ask = connection.prepareStatement(COLUMNS)) {
      ask.setString(1, target.quoted());
      try (ResultSet found = ask.executeQuery()) {
        while (found.next())
          known.put(found.getString(1), new ColumnTypes.Known(found.getString(1), found.getString(2), found.getString(3),
              found.getString(4).charAt(0), found.getInt(5), found.getBoolean(6), found.getBoolean(7)));
      }
    }
  }

  private TableStatements.Column column(StructField field) {
    ColumnTypes.Known column = find(field.name());
    if (column == null)
      throw mismatch("it has no column for '" + field.name() + "', only " + String.join(", ", known.keySet()));
    if (column.generated())
      throw mismatch("the database computes column '" + column.name() + "' itself; leave it out of the rows");
    String parsed = ColumnTypes.parsed(field.dataType());
    String expression = parsed == null ? null : ColumnTypes.expression(Sql.quote(field.name()), field.dataType(), column);
    if (expression == null)
      throw mismatch("column '" + column.name() + "' is " + column.full() + ", and the rows have " + field.dataType().sql()
          + ", which needs " + ColumnTypes.wanted(field.dataType()));
    return new TableStatements.Column(field.name(), parsed, column.name(), expression, column.type(), column.kind() == 'e'
        ? column.full() : column.type(), column.type().equals("varchar") || column.type().equals("bpchar") ? column.modifier() - 4 : -1);
  }

  /** Returns the column with this name, or else the only one with it regardless of case, as Spark reads names; or null. */
  private ColumnTypes.Known find(String name) {
    if (known.containsKey(name)) return known.get(name);
    var alike = known.values().stream().filter(each -> each.name().equalsIgnoreCase(name)).toList();
    return alike.size() == 1 ? alike.get(0) : null;
  }

  private void checkRequired(List<TableStatements.Column> columns) {
    Set<String> given = columns.stream().map(TableStatements.Column::name).collect(Collectors.toSet());
    if (given.size() < columns.size()) throw mismatch("two columns of the rows go to the same column of the table");
    var missing = known.values().stream().filter(each -> each.required() && !given.contains(each.name())).map(ColumnTypes.Known::name).toList();
    if (!missing.isEmpty())
      throw mismatch("column '" + missing.get(0) + "' must not be null and has no default, and the rows do not have it");
  }

  private List<TableStatements.Column> key(List<TableStatements.Column> columns) {
    var out = new ArrayList<TableStatements.Column>();
    for (String name : target.key()) {
      var found = columns.stream().filter(each -> each.field().equals(name)).findFirst();
      if (found.isEmpty()) throw mismatch("the rows have no column '" + name + "', which is the key");
      out.add(found.get());
    }
    return out;
  }

  private void checkUnique(Connection connection, List<TableStatements.Column> key) throws SQLException {
    Set<String> wanted = key.stream().map(TableStatements.Column::name).collect(Collectors.toSet());
    try (PreparedStatement ask = connection.prepareStatement(KEYS)) {
      ask.setString(1, target.quoted());
      try (ResultSet found = ask.executeQuery()) {
        while (found.next()) {
          Array columns = found.getArray(1);
          if (new HashSet<>(Arrays.asList((String[]) columns.getArray())).equals(wanted)) return;
        }
      }
    }
    throw mismatch("it has no primary key or unique index over exactly " + Sql.quoteAll(wanted)
        + ", without nulls, so a row cannot replace the one with the same key");
  }

  private PostgresFailure mismatch(String problem) {
    return new PostgresFailure(PostgresFailure.TABLE_MISMATCH, "cannot write to table " + target.name() + ": " + problem);
  }
}
