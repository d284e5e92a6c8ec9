package io.headgate.kernel.pulsar;

import java.util.OptionalLong;
import java.util.function.BooleanSupplier;

/**
 * What is gone behind a place before it was read.
 *
 * <p>While the place's ledger is there, everything behind it is: the oldest ledgers are removed first. Once it is gone, four
 * things may prove that nothing was lost with it: nothing was written behind the place; a subscription has kept all of it; the
 * ledger was removed because it was empty, as the job's own subscription shows; or as much is there as must be by an earlier
 * look. Without any of them something may have been.
 *
 * @param entries how many; {@link #UNKNOWN} where nobody can tell
 */
record Loss(long entries) {
  private static final long UNKNOWN = -1;

  /**
   * @param then what the partition held at an earlier look, or null
   * @param owned asked where nothing else is proof: whether the job's own subscription is
   */
  static Loss of(Place at, Ledgers now, Ledgers then, BooleanSupplier owned) {
    if (at.equals(Place.BEGIN)) return new Loss(0);
    OptionalLong held = now.entries(at.ledger());
    if (held.isPresent()) return new Loss(at.entry() <= held.getAsLong() ? 0 : UNKNOWN);
    // Nothing was written since that ledger.
    if (now.confirmed().ledger() == at.ledger()) return new Loss(Math.max(0, now.confirmed().entry() - at.entry()));
    if (now.cursors().values().stream().anyMatch(each -> each.isDurable() && each.keeps(at))) return new Loss(0);
    long missing = then == null ? UNKNOWN : missing(at, now, then);
    return new Loss(missing == UNKNOWN && owned.getAsBoolean() ? 0 : missing);
  }

  /** Counts what was there and has come since, and takes off what is there now. */
  private static long missing(Place at, Ledgers now, Ledgers then) {
    // The counter begins again where another broker takes the partition over.
    if (!then.has(at.ledger()) || now.added() < then.added()) return UNKNOWN;
    long expected = then.count(at, then.last()) + now.added() - then.added();
    return Math.max(UNKNOWN, expected - now.count(at, now.last()));
  }

  boolean isNone() {
    return entries == 0;
  }

  String told(Place at, Ledgers now) {
    if (now.has(at.ledger())) return "its log was truncated: it ends before " + at + ", which had been read";
    String begins = now.all().isEmpty() ? "it is empty" : "its log begins at " + now.first();
    if (entries > 0) return entries + " unread entries were deleted, from " + at + " on: " + begins;
    return "ledger " + at.ledger() + " was deleted with its unread entries; it had been read to " + at + ": " + begins;
  }
}
