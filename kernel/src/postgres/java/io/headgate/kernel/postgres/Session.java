package io.headgate.kernel.postgres;

import io.headgate.kernel.source.IdlePool;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;

/** A task's connection, kept in this process from epoch to epoch: opening one costs some milliseconds and a login. */
final class Session implements IdlePool.Client {
  final Connection connection;
  /** Whether earlier sessions of the task have been ended. */
  boolean isAlone;

  private Session(Connection connection) {
    this.connection = connection;
  }

  static Session open(PostgresWriters.Slot slot) {
    String doing = "write rows";
    Connection connection = slot.client().open(slot.session(), doing);
    try (Statement set = connection.createStatement()) {
      set.execute("SET lock_timeout = '60s'");
      connection.setAutoCommit(false);
      return new Session(connection);
    } catch (SQLException e) {
      throw SqlFailures.of(e, slot.client().where(), doing);
    }
  }

  @Override public void close() {
    try {
      connection.close();
    } catch (SQLException e) {
      // The server ends the session, and what it had begun, once it notices.
    }
  }
}
