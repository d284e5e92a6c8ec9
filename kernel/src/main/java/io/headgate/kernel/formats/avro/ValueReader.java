package io.headgate.kernel.formats.avro;

import io.headgate.kernel.json.BadRecord;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;

/** Reads one value as Spark's own form of a column's type; null for a null. */
interface ValueReader {
  Object read(AvroInput in) throws BadRecord;

  /** Reads a value into a row; only readers of columns that {@link ValueReaders#isFlat} names do. */
  default void read(AvroInput in, UnsafeRowWriter row, int ordinal) throws BadRecord {
    throw new UnsupportedOperationException();
  }
}
