package io.headgate.kernel.pulsar;

import io.headgate.kernel.pulsar.Ledgers.Cursor;
import java.util.Optional;

/**
 * The subscription that shows how far a job has read, as a witness of what happened to its partitions meanwhile.
 *
 * <p>A broker removes a ledger without entries when it loads a topic or closes the ledger, and moves a subscription that stood
 * at the beginning of it to the beginning of the next one. Every other move, such as expiry or truncation, leaves a
 * subscription behind an entry (seen in 4.0).
 *
 * @param name the subscription's; empty where the job has none
 */
record OwnSubscription(String name, AdminApi admin) {
  /** The property that says where the job last put it, at the latest where that was at the beginning of a ledger. */
  private static final String PLACE = "headgate.next";

  /**
   * Returns whether it proves that nothing behind a place is gone: it stands there, or before it; or the place is at the
   * beginning of a ledger, the job had put it there, or before, and since then only the removal of empty ledgers has moved it.
   */
  boolean keeps(Place at, PulsarTopic plain, Ledgers now) {
    Cursor cursor = now.cursors().get(name);
    if (cursor == null) return false;
    if (cursor.keeps(at)) return put(plain).isPresent();
    if (at.entry() != 0 || cursor.next().entry() != 0) return false;
    boolean atOldest = !now.all().isEmpty() && now.all().get(0).id() == cursor.next().ledger();
    return atOldest && put(plain).filter(place -> place.entry() == 0 && place.compareTo(at) <= 0).isPresent();
  }

  /** Returns the job's note; what bears one is durable. */
  private Optional<Place> put(PulsarTopic plain) {
    return admin.find("persistent/" + plain.path() + "/subscription/" + PulsarTopic.encoded(name) + "/properties")
        .map(properties -> properties.path(PLACE).asText("")).filter(text -> !text.isEmpty()).map(Place::parse);
  }
}
