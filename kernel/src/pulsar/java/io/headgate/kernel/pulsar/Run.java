package io.headgate.kernel.pulsar;

import java.io.Serializable;

/**
 * Entries of one ledger, one behind the other.
 *
 * @param from the first
 * @param to behind the last
 */
record Run(long ledger, long from, long to) implements Serializable {
  long size() {
    return to - from;
  }
}
