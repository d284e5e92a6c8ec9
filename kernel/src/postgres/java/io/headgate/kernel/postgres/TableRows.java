package io.headgate.kernel.postgres;

import io.headgate.kernel.rows.Envelope;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Rows on their way to one table, sent some thousand at a time; serves one thread. */
final class TableRows {
  private static final int MOST_ROWS = 5_000;
  private static final int MOST_BYTES = 2 << 20;

  /** How the rows that wait are written. */
  TableStatements statements;
  /** Whether an earlier try has committed the epoch: then none is sent. */
  final boolean isDone;
  long written;
  /** Rows as JSON, in order; null for a key whose row is deleted. The key is the message's, or else the row's number. */
  private final Map<Object, byte[]> waiting = new LinkedHashMap<>();
  private int bytes;

  TableRows(TableStatements statements, boolean isDone) {
    this.statements = statements;
    this.isDone = isDone;
  }

  void add(byte[] envelope) {
    byte[] value = isDelete(envelope) ? null : segment(envelope, 0);
    Object key = (Object) waiting.size();
    if (statements.target.hasMessageKey()) {
      // Of the changes of one key the last one counts.
      key = new String(segment(envelope, 1), StandardCharsets.UTF_8);
      waiting.remove(key);
    } else if (value == null) {
      throw new PostgresFailure(PostgresFailure.TABLE_MISMATCH, "cannot delete a row of table " + statements.target.name()
          + ": the output's key must be the only key column of the table");
    }
    waiting.put(key, value);
    bytes += value == null ? 0 : value.length;
    written++;
  }

  /** A row without a value ends its key's row; one of JSON has at least its braces. */
  private static boolean isDelete(byte[] envelope) {
    return Envelope.length(envelope, 0) <= 0;
  }

  private static byte[] segment(byte[] envelope, int i) {
    if (Envelope.segments(envelope) <= i) return new byte[0];
    int start = Envelope.start(envelope, i);
    return java.util.Arrays.copyOfRange(envelope, start, start + Envelope.length(envelope, i));
  }

  boolean isFull() {
    return waiting.size() >= MOST_ROWS || bytes >= MOST_BYTES;
  }

  void flush(Connection connection) throws SQLException {
    if (waiting.isEmpty()) return;
    Savepoint before = connection.setSavepoint();
    try {
      send(connection, List.copyOf(waiting.entrySet()));
      connection.releaseSavepoint(before);
    } catch (SQLException e) {
      if (!SqlFailures.isOfData(e)) throw e;
      connection.rollback(before);
      oneByOne(connection);
    }
    waiting.clear();
    bytes = 0;
  }

  private void send(Connection connection, List<Map.Entry<Object, byte[]>> rows) throws SQLException {
    var deleted = new ArrayList<String>();
    int size = 2;
    for (var each : rows) {
      if (each.getValue() == null) deleted.add((String) each.getKey());
      else size += each.getValue().length + 1;
    }
    if (!deleted.isEmpty()) {
      try (PreparedStatement delete = connection.prepareStatement(statements.delete())) {
        delete.setArray(1, connection.createArrayOf("text", deleted.toArray()));
        delete.executeUpdate();
      }
    }
    if (deleted.size() == rows.size()) return;
    var json = new StringBuilder(size).append('[');
    for (var each : rows) {
      if (each.getValue() == null) continue;
      if (json.length() > 1) json.append(',');
      json.append(new String(each.getValue(), StandardCharsets.UTF_8));
    }
    try (PreparedStatement write = connection.prepareStatement(statements.write())) {
      write.setString(1, json.append(']').toString());
      write.executeUpdate();
    }
  }

  /** Writes each row by itself: the database may take one after the other what it does not take at once; or one is to blame. */
  private void oneByOne(Connection connection) throws SQLException {
    for (var each : waiting.entrySet()) {
      Savepoint before = connection.setSavepoint();
      try {
        send(connection, List.of(each));
        connection.releaseSavepoint(before);
      } catch (SQLException e) {
        if (!SqlFailures.isOfData(e)) throw e;
        connection.rollback(before);
        throw new RefusedRow(connection, statements, each.getValue()).failure(e);
      }
    }
  }
}
