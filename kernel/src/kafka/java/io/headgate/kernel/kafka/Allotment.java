package io.headgate.kernel.kafka;

import io.headgate.kernel.kafka.KafkaOffset.Place;
import io.headgate.kernel.kafka.TopicCatalog.Topic;
import java.util.Map;
import java.util.TreeMap;

/**
 * How far a batch reads: as far as it goes, or so many offsets, shared by partitions in proportion to what each has waiting.
 */
final class Allotment {
  private Allotment() {}

  /**
   * Returns where a batch ends.
   *
   * <p>Partitions that {@code from} does not know are not read in this batch: it only sets where they begin.
   *
   * @param from where the batch starts, as it was logged
   * @param at the same position as it lies today
   * @param bound how many offsets the batch may have; each partition with something waiting gets one at least
   */
  static KafkaOffset end(KafkaOffset from, KafkaOffset at, Map<String, Topic> today, long bound) {
    long waiting = 0;
    for (var each : at.topics.entrySet()) {
      Place place = each.getValue();
      for (int i = 0; i < place.next().length; i++) waiting += waiting(from, each.getKey(), place, i, today);
    }
    var out = new TreeMap<String, Place>();
    for (var each : at.topics.entrySet()) {
      long[] next = each.getValue().next().clone();
      for (int i = 0; i < next.length; i++) {
        long here = waiting(from, each.getKey(), each.getValue(), i, today);
        next[i] += waiting <= bound ? here : share(here, waiting, bound);
      }
      out.put(each.getKey(), new Place(each.getValue().id(), next));
    }
    return new KafkaOffset(out);
  }

  private static long share(long here, long waiting, long bound) {
    if (here == 0) return 0;
    return Math.max(1, Math.min(here, (long) Math.floor((double) here / waiting * bound)));
  }

  private static long waiting(KafkaOffset from, String name, Place at, int partition, Map<String, Topic> today) {
    Place known = from.topics.get(name);
    Topic topic = today.get(name);
    if (known == null || topic == null || !known.knows(topic.id(), partition)) return 0;
    return Math.max(0, topic.ends()[partition] - at.next()[partition]);
  }
}
