package io.headgate.kernel.pulsar;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalLong;

/**
 * What a partition holds, as its broker told it, and the arithmetic of places in it.
 *
 * @param all its ledgers, oldest first; the last one may grow
 * @param confirmed behind the last entry that was ever written; it may lie in a ledger that is gone
 * @param added how many entries were written since the broker took the partition over
 * @param cursors how far it was acknowledged, by the name of a subscription
 * @param readable behind the last entry that readers are given: an open transaction hides its entries and all that follow
 */
record Ledgers(List<Ledger> all, Place confirmed, long added, Map<String, Cursor> cursors, Place readable) {
  /** @param size in bytes, as they are stored */
  record Ledger(long id, long entries, long size) {
    long bytes(long some) {
      return entries == 0 ? 0 : (long) ((double) size / entries * some);
    }
  }

  /**
   * How far a subscription has acknowledged messages.
   *
   * @param next behind the last of them: from there on a durable one has everything kept
   * @param isDurable whether that is known; one that has not moved since its topic was loaded does not say
   */
  record Cursor(Place next, boolean isDurable) {
    /** Returns whether all that was written behind a place is kept for this one. */
    boolean keeps(Place at) {
      return next.ledger() >= 0 && next.compareTo(at) <= 0;
    }
  }

  /** Of a partition that nothing was ever written to. */
  static final Ledgers NONE = new Ledgers(List.of(), Place.BEGIN, 0, Map.of(), Place.NO_LIMIT);

  private static final String READER = "reader-";

  /**
   * @param stats the broker's internal statistics of a plain topic
   * @param readable behind the last entry that readers are given
   */
  static Ledgers parse(JsonNode stats, Place readable) {
    Place confirmed = Place.parse(stats.get("lastConfirmedEntry").asText()).next();
    var all = new ArrayList<Ledger>();
    for (JsonNode each : stats.get("ledgers")) all.add(ledger(each, confirmed, stats));
    var cursors = new LinkedHashMap<String, Cursor>();
    stats.path("cursors").fields().forEachRemaining(each -> {
      JsonNode cursor = each.getValue();
      cursors.put(each.getKey(), new Cursor(
          Place.parse(cursor.get("markDeletePosition").asText()).next(), isDurable(each.getKey(), cursor)));
    });
    return new Ledgers(all, confirmed, stats.get("entriesAddedCounter").asLong(), cursors, readable);
  }

  /** A reader's does not have anything kept, whatever its name is. */
  private static boolean isDurable(String name, JsonNode cursor) {
    return !name.toLowerCase(Locale.ROOT).contains(READER) && cursor.path("cursorLedger").asLong(0) >= 0;
  }

  private static Ledger ledger(JsonNode each, Place confirmed, JsonNode stats) {
    long id = each.get("ledgerId").asLong();
    long entries = each.get("entries").asLong();
    if (entries > 0 || confirmed.ledger() != id) return new Ledger(id, entries, each.get("size").asLong());
    // The one that is written to is listed as empty; entries on their way to it count among its current ones, too.
    long current = Math.max(1, stats.get("currentLedgerEntries").asLong());
    double mean = (double) stats.get("currentLedgerSize").asLong() / current;
    return new Ledger(id, confirmed.entry(), (long) (mean * confirmed.entry()));
  }

  /** Returns the first entry there is, or where it will be. */
  Place first() {
    return all.isEmpty() ? Place.BEGIN : at(new Place(all.get(0).id, 0));
  }

  /** Returns the place behind the last entry that readers are given. */
  Place end() {
    Place last = last();
    return readable.compareTo(last) < 0 ? at(readable) : last;
  }

  /** Returns the place behind the last entry, whether readers are given it or not. */
  Place last() {
    if (all.isEmpty()) return Place.BEGIN;
    Ledger last = all.get(all.size() - 1);
    return new Place(last.id, last.entries);
  }

  boolean has(long ledger) {
    return all.stream().anyMatch(each -> each.id == ledger);
  }

  /** Returns how many entries a ledger has; empty where it is gone. */
  OptionalLong entries(long ledger) {
    return all.stream().filter(each -> each.id == ledger).mapToLong(Ledger::entries).findFirst();
  }

  /** Returns the first entry at or behind a place, or the end: the form in which places are compared. */
  Place at(Place place) {
    for (Ledger each : all) {
      long from = each.id == place.ledger() ? place.entry() : 0;
      if (each.id >= place.ledger() && from < each.entries) return new Place(each.id, from);
    }
    return last();
  }

  /** Returns the runs of entries between two places, ledger by ledger. */
  List<Run> runs(Place from, Place to) {
    var out = new ArrayList<Run>();
    for (Ledger each : all) {
      long first = each.id < from.ledger() ? each.entries : each.id == from.ledger() ? from.entry() : 0;
      long behind = each.id > to.ledger() ? 0 : each.id == to.ledger() ? Math.min(to.entry(), each.entries) : each.entries;
      if (first < behind) out.add(new Run(each.id, first, behind));
    }
    return out;
  }

  /** Returns how many entries lie between two places. */
  long count(Place from, Place to) {
    return runs(from, to).stream().mapToLong(Run::size).sum();
  }

  /** Returns about how many bytes lie between two places, as they are stored. */
  long bytes(Place from, Place to) {
    long sum = 0;
    for (Run run : runs(from, to)) sum += ledger(run.ledger()).bytes(run.size());
    return sum;
  }

  /** Returns the place so many bytes further on: one entry at least, if there is one. */
  Place plus(Place from, long bytes) {
    long left = bytes;
    Place out = from;
    for (Run run : runs(from, end())) {
      Ledger ledger = ledger(run.ledger());
      double mean = Math.max(1.0, (double) ledger.size / ledger.entries);
      long some = Math.min(run.size(), out.equals(from) ? Math.max(1, (long) (left / mean)) : (long) (left / mean));
      if (some == 0) return out;
      out = new Place(run.ledger(), run.from() + some);
      if (some < run.size()) return out;
      left = Math.max(0, left - ledger.bytes(some));
    }
    return at(out);
  }

  /** Returns the place so many entries before another, or the first. */
  Place minus(Place place, long entries) {
    long skipped = Math.max(0, count(first(), place) - entries);
    for (Run run : runs(first(), place)) {
      if (skipped < run.size()) return new Place(run.ledger(), run.from() + skipped);
      skipped -= run.size();
    }
    return place;
  }

  private Ledger ledger(long id) {
    return all.stream().filter(each -> each.id == id).findFirst().orElseThrow();
  }
}
