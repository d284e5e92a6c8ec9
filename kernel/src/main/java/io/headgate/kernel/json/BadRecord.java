package io.headgate.kernel.json;

/** A record that cannot become a row, with the reason; it carries no stack, since it is data. */
public final class BadRecord extends Exception {
  /** The kinds of reasons: countable, one wording everywhere. */
  public enum Reason {
    BAD_JSON, BAD_CSV, BAD_BASE64, NOT_UTF8, NOT_AN_OBJECT, WRONG_TYPE, MISSING_FIELD, NULL_FIELD, NO_KEY, TOO_LARGE, EXPRESSION_FAILED,
    BAD_EVENT_TIME, ROW_FAILED, FUNCTION_FAILED, BAD_RULE, BAD_CHANGE, TRUNCATED, VALUE_UNAVAILABLE, BAD_AVRO, SCHEMA_UNKNOWN,
    SCHEMA_INCOMPATIBLE, BAD_FILE
  }

  public final Reason reason;

  public BadRecord(Reason reason, String detail) {
    super(detail, null, false, false);
    this.reason = reason;
  }
}
