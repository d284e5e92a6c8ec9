package io.headgate.kernel.sink;

import java.io.Serializable;

/** Writes one task's rows of one epoch to one cluster; serves one thread. */
public interface LogWriter {
  /** @param envelope an encoded record: its value, unless it has none ({@link io.headgate.kernel.rows.Envelope#hasValue}), and its key if it has one */
  void write(int output, byte[] envelope);

  /** Makes the rows visible, all or none; a replay of an epoch that was committed changes nothing. */
  void commit();

  /** Returns what the driver is told of the rows that were committed; null for nothing. */
  default Serializable report() {
    return null;
  }

  /** Gives up what was not committed; safe to call whatever happened before. */
  void abort();
}
