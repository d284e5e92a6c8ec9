package io.headgate.kernel.folder;

import java.io.Closeable;
import java.io.IOException;
import java.io.Serializable;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/** A format whose files have rows and a schema of their own. */
interface RowFiles extends Serializable {
  Set<String> FORMATS = Set.of("parquet", "orc", "avro");

  static boolean reads(String format) {
    return FORMATS.contains(format);
  }

  /** The rows of a part of a file; the row is overwritten by the next call. */
  interface Rows extends Closeable {
    /** Goes to the next row; returns false behind the last. */
    boolean next() throws IOException;

    InternalRow row();

    /** Returns the number of the row in its file. */
    long number();
  }

  /** Returns the columns of a file. */
  StructType schema(DataFile file) throws IOException;

  /**
   * Opens the rows of a part of a file.
   *
   * @param columns what {@link SchemaFit} has chosen of the file's columns
   */
  Rows open(DataFile file, long from, long to, StructType columns) throws IOException;
}
