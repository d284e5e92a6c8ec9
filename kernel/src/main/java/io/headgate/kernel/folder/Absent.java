package io.headgate.kernel.folder;

import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import io.headgate.kernel.json.JsonDecoder;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/** Columns that a file does not have. */
final class Absent {
  private Absent() {}

  /** Returns their values, as where a JSON record lacks them: defaults and nulls. Refuses a file without a column that has neither. */
  static UnsafeRow defaults(StructType absent) throws BadRecord {
    try {
      return absent.isEmpty() ? null : new JsonDecoder(absent, false).decode(new byte[] {'{', '}'}).copy();
    } catch (BadRecord e) {
      throw new BadRecord(Reason.BAD_FILE, "the file lacks a column: " + e.getMessage());
    }
  }
}
