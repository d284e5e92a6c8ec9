package io.headgate.kernel.postgres;

import java.io.Serializable;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The table in which tasks note what they have committed, in the transactions that commit it.
 *
 * <p>Format 1, one row for each task and table that it wrote to: the last epoch. A row with task -1 has the query that may
 * write for a lineage: tasks hold it shared while they write, so that whoever claims the lineage waits for them.
 */
final class Epochs implements Serializable {
  static final int FORMAT = 1;
  /** What no query is called. */
  static final String NOBODY = "none";
  private static final int CLAIM = -1;
  private static final String UNDEFINED = "42P01";

  private final String table;

  /** @param table its name for SQL */
  Epochs(String table) {
    this.table = table;
  }

  /** Makes the table if it is missing; of two that make it at a time one finds that it is there. */
  void make(Connection connection) throws SQLException {
    if (isThere(connection)) return;
    try (Statement make = connection.createStatement()) {
      make.execute("CREATE TABLE IF NOT EXISTS " + table + " (format smallint NOT NULL, job text NOT NULL, lineage text NOT NULL,"
          + " task integer NOT NULL, target text NOT NULL, run text NOT NULL, epoch bigint NOT NULL, tasks integer NOT NULL,"
          + " written_rows bigint NOT NULL, written_at timestamptz NOT NULL, PRIMARY KEY (lineage, task, target))"
          + " WITH (fillfactor = 50)");
    } catch (SQLException e) {
      if (!isThere(connection)) throw e;
    }
  }

  private boolean isThere(Connection connection) throws SQLException {
    try (PreparedStatement ask = connection.prepareStatement("SELECT to_regclass(?) IS NOT NULL")) {
      ask.setString(1, table);
      try (ResultSet found = ask.executeQuery()) {
        return found.next() && found.getBoolean(1);
      }
    }
  }

  /** Returns the query that may write for a lineage, and keeps it from changing until this transaction ends; null for none. */
  String holder(Connection connection, String lineage) throws SQLException {
    try (PreparedStatement ask = connection.prepareStatement(
        "SELECT run, format FROM " + table + " WHERE lineage = ? AND task = " + CLAIM + " AND target = '' FOR SHARE")) {
      ask.setString(1, lineage);
      try (ResultSet found = ask.executeQuery()) {
        if (!found.next()) return null;
        if (found.getInt(2) != FORMAT)
          throw new PostgresFailure(PostgresFailure.FAILED, "cannot write exactly once: table " + table + " has format "
              + found.getInt(2) + ", and this release reads " + FORMAT);
        return found.getString(1);
      }
    }
  }

  /** Makes a query the only one that may write for a lineage, once those that write for it have ended their transactions. */
  void claim(Connection connection, String job, String lineage, String run) throws SQLException {
    try (PreparedStatement put = connection.prepareStatement("INSERT INTO " + table + " VALUES (" + FORMAT + ", ?, ?, " + CLAIM
        + ", '', ?, -1, 0, 0, now()) ON CONFLICT (lineage, task, target) DO UPDATE SET run = EXCLUDED.run, written_at = now()")) {
      put.setString(1, job);
      put.setString(2, lineage);
      put.setString(3, run);
      put.execute();
    }
  }

  /** Ends the sessions of these tasks that are not this one: what they have not committed is rolled back. */
  static void end(Connection connection, String sessions) throws SQLException {
    try (PreparedStatement ask = connection.prepareStatement(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE starts_with(application_name, ?)"
            + " AND pid <> pg_backend_pid() AND datname = current_database() AND usename = current_user")) {
      ask.setString(1, sessions);
      ask.execute();
    }
  }

  /** The last epoch that tasks have written to a table, and how many tasks it was shared out over. */
  record Last(long epoch, int tasks) implements Serializable {}

  /** Returns the last epoch of a lineage in each table. */
  Map<String, Last> last(Connection connection, String lineage) throws SQLException {
    var out = new HashMap<String, Last>();
    try (PreparedStatement ask = connection.prepareStatement("SELECT DISTINCT ON (target) target, epoch, tasks FROM " + table
        + " WHERE lineage = ? AND task <> " + CLAIM + " AND epoch >= 0 ORDER BY target, epoch DESC")) {
      ask.setString(1, lineage);
      try (ResultSet found = ask.executeQuery()) {
        while (found.next()) out.put(found.getString(1), new Last(found.getLong(2), found.getInt(3)));
      }
    }
    return out;
  }

  /** Returns the last epoch that a task wrote to a table, -1 for none, and keeps other tries of the task waiting. */
  long lock(Connection connection, List<String> owner, int task, String target) throws SQLException {
    try (PreparedStatement put = connection.prepareStatement("INSERT INTO " + table + " VALUES (" + FORMAT
        + ", ?, ?, ?, ?, ?, -1, 0, 0, now()) ON CONFLICT (lineage, task, target) DO UPDATE SET run = EXCLUDED.run RETURNING epoch")) {
      put.setString(1, owner.get(0));
      put.setString(2, owner.get(1));
      put.setInt(3, task);
      put.setString(4, target);
      put.setString(5, owner.get(2));
      try (ResultSet found = put.executeQuery()) {
        found.next();
        return found.getLong(1);
      }
    }
  }

  /** Notes that this transaction commits an epoch of a task. */
  void note(Connection connection, String lineage, int task, String target, long epoch, int tasks, long rows) throws SQLException {
    try (PreparedStatement put = connection.prepareStatement("UPDATE " + table + " SET epoch = ?, tasks = ?, written_rows = ?,"
        + " written_at = now() WHERE lineage = ? AND task = ? AND target = ?")) {
      put.setLong(1, epoch);
      put.setInt(2, tasks);
      put.setLong(3, rows);
      put.setString(4, lineage);
      put.setInt(5, task);
      put.setString(6, target);
      if (put.executeUpdate() != 1)
        throw new IllegalStateException("cannot write batch " + epoch + ": its row is gone from table " + table);
    }
  }

  /** Returns whether an exception says that the table is not there. */
  static boolean isGone(SQLException e) {
    return UNDEFINED.equals(e.getSQLState());
  }
}
