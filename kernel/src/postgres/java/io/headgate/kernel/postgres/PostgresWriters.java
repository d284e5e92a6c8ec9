package io.headgate.kernel.postgres;

import io.headgate.kernel.CodedFailure;
import io.headgate.kernel.sink.LogSpec;
import io.headgate.kernel.sink.LogWriter;
import io.headgate.kernel.sink.LogWriters;
import io.headgate.kernel.source.IdlePool;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Writes a flow's rows to tables of one PostgreSQL database, exactly once. */
public final class PostgresWriters implements LogWriters {
  /** Which task of which query, and to which of its databases. */
  record Slot(String run, String lineage, int cluster, int task, PostgresClient client) {
    /** Returns what sessions of the task are called; that of all tasks without one. */
    String session() {
      return session(lineage) + cluster + ":" + task;
    }

    /** PostgreSQL cuts longer names than 63 bytes, and this has at most 45. */
    static String session(String lineage) {
      return "headgate:" + lineage + ":";
    }
  }

  static final IdlePool<Slot, Session> SESSIONS = new IdlePool<>("headgate-postgres-sessions", Session::open);
  /** How long to wait for sessions of earlier queries to end: they have been told to. */
  private static final String PATIENCE = "30s";

  private final LogSpec spec;
  private final PostgresClient client;
  private final Epochs epochs;
  private final HashMap<Integer, TableStatements> tables = new HashMap<>();
  private final HashMap<String, Epochs.Last> last = new HashMap<>();

  public PostgresWriters(LogSpec spec) {
    this.spec = spec;
    client = PostgresClient.parse(spec.client());
    epochs = new Epochs(client.epochs());
  }

  @Override public void prepare(List<LogWriters> earlier) {
    String doing = "prepare to write";
    try (Connection connection = client.open("headgate:driver", doing)) {
      checkTables(connection);
      epochs.make(connection);
      connection.setAutoCommit(false);
      try (Statement set = connection.createStatement()) {
        set.execute("SET lock_timeout = '" + PATIENCE + "'");
      }
      claim(connection);
      last.putAll(epochs.last(connection, spec.query().lineage()));
      connection.commit();
    } catch (SQLException e) {
      throw SqlFailures.of(e, client.where(), doing);
    }
  }

  private void checkTables(Connection connection) throws SQLException {
    for (Map.Entry<Integer, String> each : spec.topics().entrySet())
      tables.put(each.getKey(), TableColumns.check(connection, Target.parse(each.getValue(), spec.rows().get(each.getKey()))));
  }

  private void claim(Connection connection) throws SQLException {
    LogSpec.Query query = spec.query();
    // The query that began the batch had claimed the lineage: without the claim the notes are gone, too.
    if (spec.exactlyOnce() && query.unfinishedSince() != 0 && epochs.holder(connection, query.lineage()) == null)
      throw new PostgresFailure(PostgresFailure.MARKS_LOST, "cannot finish a batch of run " + query.lineage()
          + " exactly once: table " + client.epochs() + " at " + client.where() + " has no row of the run: rows or the table were"
          + " deleted after the batch was started, or the batch was started without this output");
    var lineages = new ArrayList<String>(List.of(query.lineage()));
    for (LogSpec.Fenced fenced : query.fence()) lineages.add(fenced.lineage());
    for (String lineage : lineages) Epochs.end(connection, Slot.session(lineage));
    // In one order, so that two drivers that start at a time do not wait for each other.
    lineages.sort(null);
    for (String lineage : lineages)
      epochs.claim(connection, query.job(), lineage, lineage.equals(query.lineage()) ? query.run() : Epochs.NOBODY);
  }

  @Override public LogWriter open(int task, int tasks, long epoch) {
    return new PostgresWriter(this, task, tasks, epoch);
  }

  /** Throws where an epoch does not go with what the lineage has written before this query began. */
  void check(String target, int tasks, long epoch) {
    Epochs.Last before = last.get(target);
    if (before == null) return;
    if (epoch < before.epoch()) throw ahead(target, epoch, before.epoch());
    if (epoch == before.epoch() && tasks != before.tasks())
      throw new PostgresFailure(PostgresFailure.CHANGED, "cannot finish batch " + epoch + " of run " + spec.query().lineage()
          + ": it was started with " + before.tasks() + " tasks, and has " + tasks + " now, which changes the distribution of its rows");
  }

  PostgresFailure ahead(String target, long epoch, long written) {
    return new PostgresFailure(PostgresFailure.AHEAD, "cannot write batch " + epoch + " of run " + spec.query().lineage()
        + ": table " + target + " holds batch " + written
        + ": the checkpoint was reset to an older one, or another job writes under its name");
  }

  CodedFailure replaced(long epoch) {
    return new PostgresFailure(CodedFailure.FENCED, "cannot write batch " + epoch + " of run " + spec.query().lineage()
        + ": a newer attempt writes to " + client.where() + ", so this one stops");
  }

  LogSpec.Query query() {
    return spec.query();
  }

  PostgresClient client() {
    return client;
  }

  Epochs epochs() {
    return epochs;
  }

  TableStatements table(int output) {
    return tables.get(output);
  }

  Slot slot(int task) {
    return new Slot(spec.query().run(), spec.query().lineage(), spec.cluster(), task, client);
  }

  @Override public void passed(int task, long epoch) {}

  @Override public void close() {
    SESSIONS.close(slot -> slot.run().equals(spec.query().run()));
  }
}
