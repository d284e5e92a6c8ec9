package io.headgate.kernel.formats;

import io.headgate.kernel.json.BadRecord;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/**
 * Turns records of a database's changes into rows: a record says what became of a row, and where the change stands in the log
 * of its database.
 *
 * <p>What it returns beside the row is that of the record decoded last.
 */
public interface ChangeDecoder extends RecordDecoder {
  /** Decodes a record; null where it ends a row of which only its message key knows, or where it is {@link #isEmpty empty}. */
  @Override UnsafeRow decode(byte[] from, int start, int length) throws BadRecord;

  /** Returns whether the record has no more to say than one without a value. */
  boolean isEmpty();

  /** Returns where the change stands, as {@link io.headgate.kernel.operators.LogPosition} compares it; null for nowhere. */
  byte[] position();

  /** Returns a row with the key that the changed row had before; null where there is nothing to compare. */
  UnsafeRow before();

  /** Returns the key of a table's row that a message key says; the very bytes that the row's own columns give. */
  byte[] key(byte[] from, int start, int length) throws BadRecord;
}
