package io.headgate.kernel.kafka;

import io.headgate.kernel.kafka.Gauge.Waiting;
import io.headgate.kernel.kafka.KafkaOffset.Place;
import io.headgate.kernel.kafka.TopicCatalog.Topic;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;

/** What a batch may read of each partition, and where it ends. */
final class Allotment {
  private Allotment() {}

  /**
   * Returns the partitions that have something to read, in the order of topics and partitions.
   *
   * <p>Partitions that {@code from} does not know are not read in this batch: it only sets where they begin.
   *
   * @param from where the batch starts, as it was logged
   * @param at the same position as it lies today
   */
  static List<Waiting> waiting(KafkaOffset from, KafkaOffset at, Map<String, Topic> today) {
    var out = new ArrayList<Waiting>();
    at.topics.forEach((name, place) -> {
      Place known = from.topics.get(name);
      Topic topic = today.get(name);
      if (known == null || topic == null) return;
      for (int i = 0; i < place.next().length; i++)
        if (known.knows(topic.id(), i) && topic.ends()[i] > place.next()[i])
          out.add(new Waiting(new TopicPartition(name, i), topic.id(), place.next()[i], topic.ends()[i]));
    });
    return out;
  }

  /** Returns a position with the ends of partitions in it. */
  static KafkaOffset end(KafkaOffset at, List<Waiting> waiting, long[] ends) {
    var out = new TreeMap<String, Place>();
    at.topics.forEach((name, place) -> out.put(name, new Place(place.id(), place.next().clone())));
    for (int i = 0; i < ends.length; i++) {
      TopicPartition place = waiting.get(i).place();
      out.get(place.topic()).next()[place.partition()] = ends[i];
    }
    return new KafkaOffset(out);
  }

  /** Returns what is left to read behind the ends of a batch. */
  static List<Waiting> left(List<Waiting> waiting, long[] ends) {
    var out = new ArrayList<Waiting>();
    for (int i = 0; i < ends.length; i++) {
      Waiting each = waiting.get(i);
      if (ends[i] < each.to()) out.add(new Waiting(each.place(), each.id(), ends[i], each.to()));
    }
    return out;
  }
}
