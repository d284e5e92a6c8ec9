package io.headgate.kernel.json;

import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * Writes the text of one string column as it is, and a null as no bytes at all.
 *
 * <p>Ends of lines become blanks: an embedded topic holds one record on a line, and a record is the same on every log.
 */
public final class TextEncoder implements RowEncoder {
  private final Layout.Path path;

  /** @param column the way to a string */
  public TextEncoder(Layout.Path column) {
    path = column;
  }

  @Override public byte[] encode(SegmentedRow row) {
    InternalRow at = JsonEncoder.descend(row.segment(path.segment()), path);
    if (at == null || at.isNullAt(path.last())) return new byte[0];
    byte[] text = at.getUTF8String(path.last()).getBytes();
    byte[] safe = text;
    for (int i = 0; i < text.length; i++) {
      if (text[i] != '\n' && text[i] != '\r') continue;
      // The bytes may be the row's own, which stay as they are.
      if (safe == text) safe = text.clone();
      safe[i] = ' ';
    }
    return safe;
  }
}
