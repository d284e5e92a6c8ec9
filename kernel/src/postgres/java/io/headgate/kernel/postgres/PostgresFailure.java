package io.headgate.kernel.postgres;

import io.headgate.kernel.CodedFailure;

/** Something that went wrong with PostgreSQL, named by a code at the head of its message, which is one line without secrets. */
final class PostgresFailure extends CodedFailure {
  static final String TABLE_MISMATCH = "TABLE_MISMATCH";
  static final String ROW_REFUSED = "ROW_REFUSED";
  static final String FAILED = "BROKER_FAILED";
  static final String AHEAD = "OUTPUT_AHEAD";
  static final String CHANGED = "OUTPUT_CHANGED";
  static final String MARKS_LOST = "MARKS_LOST";

  PostgresFailure(String code, String message) {
    super(code, message);
  }

  PostgresFailure(String code, String message, Throwable cause) {
    super(code, message, cause);
  }
}
