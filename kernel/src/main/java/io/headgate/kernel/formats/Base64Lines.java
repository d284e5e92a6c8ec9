package io.headgate.kernel.formats;

import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import io.headgate.kernel.json.RowEncoder;
import io.headgate.kernel.rows.SegmentedRow;
import java.util.Arrays;
import java.util.Base64;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/**
 * Records of any bytes on lines: each line is the base64 of a record.
 *
 * <p>A record without bytes is the line {@code =}, which is no base64: a blank line is no record.
 */
final class Base64Lines {
  private static final byte[] EMPTY = {'='};

  private Base64Lines() {}

  record Encoder(RowEncoder records) implements RowEncoder {
    @Override public byte[] encode(SegmentedRow row) throws BadRecord {
      byte[] record = records.encode(row);
      return record.length == 0 ? EMPTY : Base64.getEncoder().encode(record);
    }

    @Override public void atStart() {
      records.atStart();
    }
  }

  record Decoder(RecordDecoder records) implements RecordDecoder {
    @Override public UnsafeRow decode(byte[] from, int start, int length) throws BadRecord {
      // A line may end with a carriage return, where an editor wrote it.
      int end = length > 0 && from[start + length - 1] == '\r' ? start + length - 1 : start + length;
      if (end - start == 1 && from[start] == EMPTY[0]) return records.decode(from, start, 0);
      byte[] record;
      try {
        record = Base64.getDecoder().decode(Arrays.copyOfRange(from, start, end));
      } catch (IllegalArgumentException e) {
        throw new BadRecord(Reason.BAD_BASE64, "the line is not base64: " + e.getMessage());
      }
      return records.decode(record, 0, record.length);
    }

    @Override public void atStart() {
      records.atStart();
    }

    @Override public boolean isTombstone() {
      return records.isTombstone();
    }
  }
}
