package io.headgate.kernel.formats;

import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.DeadLetter;
import java.io.Serializable;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/**
 * Turns the bytes of one record into a packed row, or says why it cannot.
 *
 * <p>One decoder serves one thread; the row it returns is overwritten by the next call. What another attempt decodes must be
 * the same: a decoder depends on nothing but the bytes and its format.
 */
public interface RecordDecoder extends Serializable {
  /** Decodes the record that lies in a range of bytes. */
  UnsafeRow decode(byte[] from, int start, int length) throws BadRecord;

  /** Returns what is wrong with a record of a stream that has no value at all. */
  default BadRecord.Reason withoutValue() {
    return BadRecord.Reason.NULL_FIELD;
  }

  /** Asks other systems whether records will fit, once before the first batch, on the driver. */
  default void atStart() {}

  /** Returns whether the last decoded record ends its key's row; then only the key columns mean anything. */
  default boolean isTombstone() {
    return false;
  }

  /**
   * Returns what a dead letter shows of a record in place of its bytes; null if nothing can be shown.
   *
   * @param length the length of the whole value
   */
  default byte[] shown(byte[] from, int start, int length) {
    return Arrays.copyOfRange(from, start, start + Math.min(length, DeadLetter.RAW_LIMIT));
  }
}
