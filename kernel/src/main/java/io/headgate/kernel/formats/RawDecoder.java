package io.headgate.kernel.formats;

import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;

/** Takes the bytes of a record as the only column. */
final class RawDecoder implements RecordDecoder {
  private transient UnsafeRowWriter row;

  @Override public UnsafeRow decode(byte[] from, int start, int length) {
    if (row == null) row = new UnsafeRowWriter(1);
    row.reset();
    row.zeroOutNullBytes();
    row.write(0, from, start, length);
    return row.getRow();
  }
}
