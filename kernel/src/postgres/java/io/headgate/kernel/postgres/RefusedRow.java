package io.headgate.kernel.postgres;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.nio.charset.StandardCharsets;
import java.util.stream.Collectors;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;

/** A row that the database refuses: which one it is, and because of which column or constraint. */
record RefusedRow(Connection connection, TableStatements statements, byte[] row) {
  PostgresFailure failure(SQLException e) throws SQLException {
    var message = new StringBuilder("cannot write a row to table ").append(statements.target.name());
    String key = key();
    if (!key.isEmpty()) message.append(" with ").append(key);
    ServerErrorMessage said = e instanceof PSQLException p ? p.getServerErrorMessage() : null;
    String column = said == null || said.getColumn() == null ? column() : said.getColumn();
    if (column != null) message.append(", column '").append(column).append('\'');
    if (said != null && said.getConstraint() != null) message.append(", constraint '").append(said.getConstraint()).append('\'');
    // The detail of a constraint quotes the whole row.
    message.append(": ").append(said == null ? e.getMessage() : said.getMessage());
    return new PostgresFailure(PostgresFailure.ROW_REFUSED, message.toString(), e);
  }

  private String key() {
    if (row == null) return "";
    try {
      JsonNode values = new ObjectMapper().readTree(row);
      return statements.key().stream().map(each -> each.field() + " " + values.path(each.field())).collect(Collectors.joining(", "));
    } catch (IOException e) {
      return "";
    }
  }

  /** Returns the first column that the row is refused for; null where that is not known. */
  private String column() throws SQLException {
    if (row == null) return null;
    for (TableStatements.Column column : statements.columns()) {
      if (fails(TableStatements.probe(column), -1)) return column.name();
      if (column.longest() >= 0 && fails(TableStatements.length(column), column.longest())) return column.name();
    }
    return null;
  }

  /** @param most what the result may be at most; -1 for anything */
  private boolean fails(String probe, int most) throws SQLException {
    Savepoint before = connection.setSavepoint();
    try (PreparedStatement ask = connection.prepareStatement(probe)) {
      ask.setString(1, "[" + new String(row, StandardCharsets.UTF_8) + "]");
      try (ResultSet found = ask.executeQuery()) {
        return most >= 0 && found.next() && found.getInt(1) > most;
      }
    } catch (SQLException e) {
      if (!SqlFailures.isOfData(e)) throw e;
      return true;
    } finally {
      connection.rollback(before);
    }
  }
}
