package io.headgate.kernel.formats;

import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.Utf8;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;

/** Takes a record as the text of the only column. */
public final class TextDecoder implements RecordDecoder {
  private transient UnsafeRowWriter row;

  @Override public UnsafeRow decode(byte[] from, int start, int length) throws BadRecord {
    Utf8.check(from, start, length);
    if (row == null) row = new UnsafeRowWriter(1);
    row.reset();
    row.zeroOutNullBytes();
    row.write(0, from, start, length);
    return row.getRow();
  }
}
