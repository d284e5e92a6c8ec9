package io.headgate.kernel.folder;

import io.headgate.kernel.json.BadRecord;
import java.io.Closeable;
import java.io.IOException;

/** The records of a part of a file. */
interface FileRecords extends Closeable {
  /** Returns the next record, null behind the last. */
  byte[] next() throws IOException, BadRecord;

  /** Returns the place behind the last record that was returned. */
  long place();
}
