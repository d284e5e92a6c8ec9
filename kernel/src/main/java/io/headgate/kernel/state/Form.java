package io.headgate.kernel.state;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/** What an operator holds of one key, as a row that people can read. */
public interface Form extends Serializable {
  StructType schema();

  /** Returns the row; null where state holds no more than that the key was deleted. */
  InternalRow read(byte[] key, byte[] value);
}
