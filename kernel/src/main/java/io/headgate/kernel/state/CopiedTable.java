package io.headgate.kernel.state;

import io.headgate.kernel.broadcast.ControlBuckets;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/** A table of which each task has a copy: one of them is read. */
record CopiedTable(Form table) implements Form {
  @Override public StructType schema() {
    return table.schema();
  }

  @Override public InternalRow read(byte[] key, byte[] value) {
    return table.read(key, value);
  }

  @Override public int bucket(byte[] key) {
    return ControlBuckets.FIRST;
  }
}
