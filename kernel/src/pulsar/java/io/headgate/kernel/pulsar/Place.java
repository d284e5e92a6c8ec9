package io.headgate.kernel.pulsar;

import java.io.Serializable;

/**
 * An entry of a partition, which holds one message, a batch of them, or a part of one; written as {@code ledger:entry}.
 *
 * @param ledger Pulsar's number of the ledger, which grows from one ledger of a partition to the next
 * @param entry its number in the ledger, from 0 on
 */
record Place(long ledger, long entry) implements Comparable<Place>, Serializable {
  /** Before all there will ever be. */
  static final Place BEGIN = new Place(-1, 0);
  /** Behind all there will ever be. */
  static final Place NO_LIMIT = new Place(Long.MAX_VALUE, 0);

  static Place parse(String text) {
    int cut = text.indexOf(':');
    try {
      return new Place(Long.parseLong(text.substring(0, cut).strip()), Long.parseLong(text.substring(cut + 1).strip()));
    } catch (IndexOutOfBoundsException | NumberFormatException e) {
      throw new PulsarFailure(PulsarFailure.BAD_START, "a message must be ledger:entry, got '" + text + "'");
    }
  }

  /** Returns the place behind this one in its ledger, whether there is an entry or not. */
  Place next() {
    return new Place(ledger, entry + 1);
  }

  @Override public int compareTo(Place other) {
    return ledger != other.ledger ? Long.compare(ledger, other.ledger) : Long.compare(entry, other.entry);
  }

  @Override public String toString() {
    return ledger + ":" + entry;
  }
}
