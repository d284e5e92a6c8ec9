package io.headgate.kernel.pulsar;

import io.headgate.kernel.pulsar.PulsarOffset.Standpoint;
import io.headgate.kernel.pulsar.TopicCatalog.Topic;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * How far a batch reads: as far as it goes, or so many bytes, shared by partitions in proportion to what each has waiting.
 *
 * @param end where it ends, always between two entries
 * @param bytes how many it reads, as they are stored and by estimate
 * @param left how many it leaves unread
 */
record Allotment(PulsarOffset end, long bytes, long left) {
  /**
   * Returns where a batch ends.
   *
   * <p>Partitions that {@code from} does not know, or knows as never written to, or of a topic that was made anew, are not
   * read in this batch: it only sets where they begin.
   *
   * @param from where the batch starts, as it was logged
   * @param at the same position as it lies today
   * @param bound how many stored bytes the batch may have; each partition with something waiting gets an entry at least
   */
  static Allotment of(PulsarOffset from, PulsarOffset at, Map<String, Topic> today, long bound) {
    long waiting = 0;
    for (var each : at.topics.entrySet()) {
      Topic topic = today.get(each.getKey());
      for (int i = 0; i < each.getValue().next().size(); i++)
        if (reads(from, each.getValue(), each.getKey(), topic, i)) waiting += waiting(each.getValue(), topic, i);
    }
    var out = new TreeMap<String, Standpoint>();
    long sum = 0;
    for (var each : at.topics.entrySet()) {
      Topic topic = today.get(each.getKey());
      List<Place> next = new ArrayList<>(each.getValue().next());
      for (int i = 0; i < next.size(); i++) {
        if (!reads(from, each.getValue(), each.getKey(), topic, i)) continue;
        Ledgers ledgers = topic.partitions().get(i);
        Place begin = next.get(i);
        long here = waiting(each.getValue(), topic, i);
        // A batch that was logged while a transaction was not known of may have ended behind what can be read.
        if (begin.compareTo(ledgers.end()) >= 0) continue;
        next.set(i, waiting <= bound ? ledgers.end() : ledgers.plus(begin, (long) ((double) here / waiting * bound)));
        sum += ledgers.bytes(begin, next.get(i));
      }
      out.put(each.getKey(), new Standpoint(each.getValue().partitioned(), List.copyOf(next)));
    }
    return new Allotment(new PulsarOffset(out), sum, waiting - sum);
  }

  private static boolean reads(PulsarOffset from, Standpoint at, String name, Topic topic, int partition) {
    Standpoint known = from.topics.get(name);
    if (known == null || topic == null || !known.knows(topic.partitioned(), partition)) return false;
    Place logged = known.next().get(partition);
    // A batch that is read again needs a ledger to be held against, and ends behind its beginning.
    return !logged.equals(Place.BEGIN) && logged.compareTo(at.next().get(partition)) <= 0;
  }

  private static long waiting(Standpoint at, Topic topic, int partition) {
    Ledgers ledgers = topic.partitions().get(partition);
    return ledgers.bytes(at.next().get(partition), ledgers.end());
  }
}
