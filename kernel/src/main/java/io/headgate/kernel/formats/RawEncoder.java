package io.headgate.kernel.formats;

import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import io.headgate.kernel.json.JsonEncoder;
import io.headgate.kernel.json.RowEncoder;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import org.apache.spark.sql.catalyst.InternalRow;

/** Writes the bytes of a row's only column as they are; there is no form for a null. */
public final class RawEncoder implements RowEncoder {
  private final Layout.Path path;

  /** @param column the way to bytes */
  public RawEncoder(Layout.Path column) {
    path = column;
  }

  @Override public byte[] encode(SegmentedRow row) throws BadRecord {
    InternalRow at = JsonEncoder.descend(row.segment(path.segment()), path);
    if (at == null || at.isNullAt(path.last()))
      throw new BadRecord(Reason.NULL_FIELD, "field '" + path.name() + "' must not be null: it is the whole record");
    return at.getBinary(path.last());
  }
}
