package io.headgate.kernel.postgres;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.headgate.kernel.rows.Envelope;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A task's rows of one epoch on their way to one table; serves one thread.
 *
 * <p>Without a key they are sent some thousand at a time. With a key, one row of each waits until the epoch is committed: the one
 * whose record comes last in its source, whatever order the rows come in.
 */
final class TableRows {
  private static final int MOST_ROWS = 5_000;
  private static final int MOST_BYTES = 2 << 20;
  private static final ObjectMapper JSON = new ObjectMapper();
  /** Rows of single records by their positions, and behind them the others, as they came. */
  private static final Comparator<byte[]> BY_RECORD = (a, b) -> {
    if (isOfRecord(a) != isOfRecord(b)) return isOfRecord(a) ? -1 : 1;
    return isOfRecord(a) ? Envelope.compareRecords(a, b) : 0;
  };

  /** How the rows that wait are written. */
  TableStatements statements;
  /** Whether an earlier try has committed the epoch: then none is sent. */
  final boolean isDone;
  /** How many rows came. */
  long written;
  /** Envelopes by their key, or by their number where there is none. */
  private final Map<Object, byte[]> waiting = new LinkedHashMap<>();
  private long bytes;

  TableRows(TableStatements statements, boolean isDone) {
    this.statements = statements;
    this.isDone = isDone;
  }

  void add(byte[] envelope) {
    written++;
    if (statements.key().isEmpty()) {
      waiting.put(written, envelope);
      bytes += envelope.length;
      return;
    }
    waiting.merge(key(envelope), envelope, (before, now) -> BY_RECORD.compare(before, now) > 0 ? before : now);
  }

  private static boolean isOfRecord(byte[] envelope) {
    return Envelope.source(envelope) != Envelope.NO_SOURCE;
  }

  private String key(byte[] envelope) {
    if (statements.target.hasMessageKey()) return text(envelope, 1);
    if (isDelete(envelope))
      throw new PostgresFailure(PostgresFailure.TABLE_MISMATCH, "cannot delete a row of table " + statements.target.name()
          + ": the output's key must be the only key column of the table");
    try {
      JsonNode row = JSON.readTree(text(envelope, 0));
      var key = JSON.createArrayNode();
      for (TableStatements.Column column : statements.key()) key.add(row.path(column.field()));
      return key.toString();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** A row without a value ends its key's row. */
  static boolean isDelete(byte[] envelope) {
    return !Envelope.hasValue(envelope);
  }

  private static String text(byte[] envelope, int segment) {
    // A null key has no segment: the database says what it thinks of it.
    if (Envelope.segments(envelope) <= segment) return "";
    return new String(envelope, Envelope.start(envelope, segment), Envelope.length(envelope, segment), StandardCharsets.UTF_8);
  }

  /** Returns whether rows must be sent before more are taken. */
  boolean isFull() {
    return statements.key().isEmpty() && (waiting.size() >= MOST_ROWS || bytes >= MOST_BYTES);
  }

  void flush(Connection connection) throws SQLException {
    var rows = new ArrayList<>(waiting.values());
    waiting.clear();
    bytes = 0;
    // Keys that are equal to the database alone, too, end with the last row.
    rows.sort(BY_RECORD);
    int from = 0;
    while (from < rows.size()) {
      int to = from;
      for (long size = 0; to < rows.size() && to - from < MOST_ROWS && size < MOST_BYTES; to++) size += rows.get(to).length;
      part(connection, rows.subList(from, to));
      from = to;
    }
  }

  private void part(Connection connection, List<byte[]> rows) throws SQLException {
    Savepoint before = connection.setSavepoint();
    try {
      send(connection, rows);
      connection.releaseSavepoint(before);
    } catch (SQLException e) {
      if (!SqlFailures.isOfData(e)) throw e;
      connection.rollback(before);
      oneByOne(connection, rows);
    }
  }

  private void send(Connection connection, List<byte[]> rows) throws SQLException {
    String[] deleted = rows.stream().filter(TableRows::isDelete).map(row -> text(row, 1)).toArray(String[]::new);
    if (deleted.length > 0) {
      try (PreparedStatement delete = connection.prepareStatement(statements.delete())) {
        delete.setArray(1, connection.createArrayOf("text", deleted));
        delete.executeUpdate();
      }
    }
    if (deleted.length == rows.size()) return;
    var json = new StringBuilder().append('[');
    for (byte[] row : rows) {
      if (isDelete(row)) continue;
      if (json.length() > 1) json.append(',');
      json.append(text(row, 0));
    }
    try (PreparedStatement write = connection.prepareStatement(statements.write())) {
      write.setString(1, json.append(']').toString());
      write.executeUpdate();
    }
  }

  /** Writes each row by itself: the database may take one after the other what it does not take at once; or one is to blame. */
  private void oneByOne(Connection connection, List<byte[]> rows) throws SQLException {
    for (byte[] row : rows) {
      Savepoint before = connection.setSavepoint();
      try {
        send(connection, List.of(row));
        connection.releaseSavepoint(before);
      } catch (SQLException e) {
        if (!SqlFailures.isOfData(e)) throw e;
        connection.rollback(before);
        byte[] value = isDelete(row) ? null : text(row, 0).getBytes(StandardCharsets.UTF_8);
        throw new RefusedRow(connection, statements, value).failure(e);
      }
    }
  }
}
