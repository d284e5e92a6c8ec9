package io.headgate.kernel.postgres;

import io.headgate.kernel.sink.LogSpec;
import io.headgate.kernel.sink.LogWriter;
import io.headgate.kernel.testing.CrashPoint;
import java.sql.SQLException;
import java.util.List;
import java.util.TreeMap;

/**
 * Writes one task's rows of one epoch to the tables of their outputs, in one transaction.
 *
 * <p>The transaction begins with the first rows that are sent, and notes the epoch before it commits. A try that finds the epoch
 * noted writes nothing.
 */
final class PostgresWriter implements LogWriter {
  private final PostgresWriters writers;
  private final int task;
  private final int tasks;
  private final long epoch;
  /** By the table's name: several outputs may write to one. */
  private final TreeMap<String, TableRows> tables = new TreeMap<>();
  private Session session;

  PostgresWriter(PostgresWriters writers, int task, int tasks, long epoch) {
    this.writers = writers;
    this.task = task;
    this.tasks = tasks;
    this.epoch = epoch;
  }

  @Override public void write(int output, byte[] envelope) {
    TableRows rows = rows(output);
    if (rows.isDone) return;
    if (rows.isFull() || rows.statements != writers.table(output)) flush(rows);
    rows.statements = writers.table(output);
    rows.add(envelope);
  }

  private TableRows rows(int output) {
    TableStatements statements = writers.table(output);
    String name = statements.target.name();
    TableRows known = tables.get(name);
    if (known != null) return known;
    writers.check(name, tasks, epoch);
    try {
      begin();
      LogSpec.Query query = writers.query();
      long before = writers.epochs().lock(session.connection, List.of(query.job(), query.lineage(), query.run()), task, name);
      if (before > epoch) throw writers.ahead(name, epoch, before);
      var rows = new TableRows(statements, before == epoch);
      tables.put(name, rows);
      return rows;
    } catch (SQLException e) {
      throw failure(e);
    }
  }

  private void begin() throws SQLException {
    if (session != null) return;
    session = PostgresWriters.SESSIONS.take(writers.slot(task));
    checkClaim();
    if (session.isAlone) return;
    // Another try of this task, perhaps frozen, may hold what this one needs.
    Epochs.end(session.connection, writers.slot(task).session());
    session.isAlone = true;
  }

  private void checkClaim() throws SQLException {
    CrashPoint.at("claim-checked");
    String holder = writers.epochs().holder(session.connection, writers.query().lineage());
    if (holder == null)
      throw new IllegalStateException("cannot write batch " + epoch + " of run " + writers.query().lineage()
          + ": its claim is gone from table " + writers.client().epochs() + " at " + writers.client().where());
    if (!holder.equals(writers.query().run())) throw writers.replaced(epoch);
  }

  private void flush(TableRows rows) {
    try {
      rows.flush(session.connection);
      CrashPoint.at("in-transaction");
    } catch (SQLException e) {
      throw failure(e);
    }
  }

  @Override public void commit() {
    if (session == null) return;
    for (TableRows rows : tables.values()) if (!rows.isDone) flush(rows);
    try {
      for (var each : tables.entrySet())
        if (!each.getValue().isDone)
          writers.epochs().note(session.connection, writers.query().lineage(), task, each.getKey(), epoch, tasks, each.getValue().written);
      CrashPoint.at("state-committed");
      session.connection.commit();
      CrashPoint.at("task-committed");
    } catch (SQLException e) {
      throw failure(e);
    }
    PostgresWriters.SESSIONS.give(writers.slot(task), session);
    session = null;
  }

  @Override public void abort() {
    // The server rolls back what was begun.
    if (session != null) session.close();
    session = null;
  }

  private RuntimeException failure(SQLException e) {
    if (Epochs.isGone(e)) {
      return new PostgresFailure(PostgresFailure.TOPIC_MISSING,
          "cannot write batch " + epoch + ": a table was deleted at " + writers.client().where() + ": " + e.getMessage(), e);
    }
    return SqlFailures.of(e, writers.client().where(), "write batch " + epoch);
  }
}
