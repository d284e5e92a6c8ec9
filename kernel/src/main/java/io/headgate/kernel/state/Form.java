package io.headgate.kernel.state;

import io.headgate.kernel.rows.Bucket;
import java.io.Serializable;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/** What an operator holds of one key, as a row that people can read. */
public interface Form extends Serializable {
  /** What state holds beside the entry of a key. */
  interface Entries {
    /** Returns what entries of state hold, by their names there; null for one that is not there. */
    byte[][] find(List<byte[]> names);
  }

  StructType schema();

  /** Returns the row; null where state holds no more than that the key was deleted. */
  InternalRow read(byte[] key, byte[] value);

  /**
   * Returns the row, of which a part may lie in further entries.
   *
   * @param now in epoch milliseconds; what has expired by then is left out
   */
  default InternalRow read(byte[] key, byte[] value, Entries entries, long now) {
    return read(key, value);
  }

  /** Returns the bucket that a key is in. */
  default int bucket(byte[] key) {
    return Bucket.of(key);
  }

  /** Returns the name in state of a key's entry. */
  default byte[] entry(byte[] key) {
    return key;
  }

  /** Returns what the names of all further entries of a key begin with; null if there are none. */
  default byte[] further(byte[] key) {
    return null;
  }

  /** Returns the length of the names of further entries. */
  default int furtherLength(byte[] key) {
    return 0;
  }
}
