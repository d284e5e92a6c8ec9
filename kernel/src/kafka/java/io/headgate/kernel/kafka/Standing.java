package io.headgate.kernel.kafka;

import io.headgate.kernel.kafka.KafkaOffset.Place;
import io.headgate.kernel.kafka.TopicCatalog.Topic;
import io.headgate.kernel.source.Finding;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Predicate;

/**
 * A position held against the topics as they are: where it lies today, and what has happened to them since.
 *
 * @param position what was gone is passed over, what is new is at its beginning; a topic that is gone keeps its place
 * @param findings in the order of topics and partitions
 */
record Standing(KafkaOffset position, List<Finding> findings) {
  /** @param reads which topics the source reads; the position may know others of earlier days */
  static Standing of(KafkaOffset from, Map<String, Topic> today, Predicate<String> reads) {
    var places = new TreeMap<String, Place>();
    var findings = new ArrayList<Finding>();
    from.topics.forEach((name, place) -> {
      if (!reads.test(name)) return;
      Topic topic = today.get(name);
      places.put(name, topic == null ? gone(name, place, findings) : present(name, place, topic, findings));
    });
    today.forEach((name, topic) -> {
      if (from.topics.containsKey(name)) return;
      places.put(name, new Place(topic.id(), topic.begins().clone()));
      findings.add(new Finding(Finding.Kind.TOPIC_ADDED, name, "topic '" + name + "' is read from its beginning on"));
    });
    return new Standing(new KafkaOffset(places), findings);
  }

  /** Returns what of a target is left to reach in the topics as they are. */
  static KafkaOffset left(KafkaOffset target, Map<String, Topic> today, List<Finding> findings) {
    var places = new TreeMap<String, Place>();
    target.topics.forEach((name, wanted) -> {
      Topic topic = today.get(name);
      if (topic == null || !wanted.id().equals(topic.id())) return;
      long[] next = wanted.next().clone();
      for (int i = 0; i < next.length; i++) {
        long end = Math.max(topic.ends()[i], topic.tops()[i]);
        if (next[i] <= end) continue;
        findings.add(cut(name, i, end, "had reached " + next[i]));
        next[i] = end;
      }
      places.put(name, new Place(wanted.id(), next));
    });
    return new KafkaOffset(places);
  }

  private static Finding cut(String name, int partition, long end, String before) {
    return new Finding(Finding.Kind.DATA_LOST, name, "topic '" + name + "' partition " + partition
        + ": its log was truncated: it ends at " + end + ", and " + before);
  }

  private static Place gone(String name, Place place, List<Finding> findings) {
    findings.add(new Finding(Finding.Kind.TOPIC_GONE, name,
        "topic '" + name + "' was deleted; it had been read to " + Arrays.toString(place.next())));
    return place;
  }

  private static Place present(String name, Place place, Topic topic, List<Finding> findings) {
    if (!place.id().equals(topic.id())) {
      findings.add(new Finding(Finding.Kind.TOPIC_MADE_ANEW, name,
          "topic '" + name + "' was recreated; the old one had been read to " + Arrays.toString(place.next())
              + ", and its unread records were deleted"));
      return new Place(topic.id(), topic.begins().clone());
    }
    int before = place.next().length;
    int now = topic.ends().length;
    if (now > before)
      findings.add(new Finding(Finding.Kind.TOPIC_GREW, name,
          "topic '" + name + "' has " + now + " partitions, and had " + before + "; the new ones are read from offset 0"));
    long[] next = Arrays.copyOf(place.next(), now);
    for (int i = 0; i < now; i++) next[i] = within(name, i, next[i], topic, findings);
    return new Place(topic.id(), next);
  }

  private static long within(String name, int partition, long next, Topic topic, List<Finding> findings) {
    long begin = topic.begins()[partition];
    // A reader that did not wait for transactions may have been behind those that are open.
    long end = Math.max(topic.ends()[partition], topic.tops()[partition]);
    if (next < begin) {
      findings.add(late(name, partition, next, begin));
      return begin;
    }
    if (next > end) {
      findings.add(cut(name, partition, end, "had been read to " + next));
      return end;
    }
    return next;
  }

  /** Returns what to tell of a partition that has lost its oldest records before they were read. */
  static Finding late(String name, int partition, long next, long begin) {
    return new Finding(Finding.Kind.DATA_LOST, name, "topic '" + name + "' partition " + partition + ": " + (begin - next)
        + " unread offsets were deleted, from " + next + " to " + (begin - 1) + ": its log begins at " + begin);
  }
}
