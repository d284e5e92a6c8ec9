package io.headgate.kernel.postgres;

import io.headgate.kernel.CodedFailure;
import io.headgate.kernel.secrets.References;
import java.sql.SQLException;
import java.util.Set;

/** What the server and the driver answer, by the state of SQL that they name: which of it a retry can fix. */
final class SqlFailures {
  /** A table or a column that is not there, and a schema. */
  private static final Set<String> GONE = Set.of("42P01", "42703", "3F000", "3D000");
  /** Classes of what another try may pass: connections, resources, rollbacks, the operator's and the system's doing. */
  private static final Set<String> PASSING = Set.of("08", "53", "40", "57", "58", "XX", "25");
  /** A lock that was not to be had in time. */
  private static final String LOCKED = "55P03";
  private static final String NOT_ALLOWED = "42501";
  private static final String TWICE_IN_ONE = "21000";

  private SqlFailures() {}

  /** Returns whether the server refuses the values of a row: its types, lengths or constraints. */
  static boolean isOfData(SQLException e) {
    String state = state(e);
    return state.startsWith("22") || state.startsWith("23") || state.startsWith("44") || state.equals(TWICE_IN_ONE)
        || state.equals("P0001");
  }

  static boolean isLocked(SQLException e) {
    return state(e).equals(LOCKED);
  }

  /** @param doing what could not be done, after the word cannot */
  static RuntimeException of(SQLException e, String where, String doing) {
    return of(e, where, doing, null);
  }

  /** @param references what was resolved for the connection; may be null */
  static RuntimeException of(SQLException e, String where, String doing, References references) {
    if (Thread.currentThread().isInterrupted()) return CodedFailure.interrupted("PostgreSQL");
    String state = state(e);
    String said = String.valueOf(e.getMessage());
    String message = references == null ? said : references.scrub(said);
    if (state.startsWith("28") || state.equals(NOT_ALLOWED))
      return new PostgresFailure(CodedFailure.REFUSED, "cannot " + doing + ": PostgreSQL at " + where + " refuses: " + message, e);
    if (GONE.contains(state))
      return new PostgresFailure(CodedFailure.TOPIC_MISSING, "cannot " + doing + " at " + where + ": " + message, e);
    if (state.isEmpty() || state.equals(LOCKED) || PASSING.contains(state.substring(0, 2)))
      return new PostgresFailure(
          CodedFailure.UNREACHABLE, "cannot " + doing + ": PostgreSQL at " + where + " did not answer or gave up: " + message, e);
    return new PostgresFailure(
        PostgresFailure.FAILED, "cannot " + doing + ": PostgreSQL at " + where + " answered: " + message, e);
  }

  private static String state(SQLException e) {
    return e.getSQLState() == null || e.getSQLState().length() != 5 ? "" : e.getSQLState();
  }
}
