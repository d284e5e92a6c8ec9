package io.headgate.kernel.kafka;

import io.headgate.kernel.kafka.KafkaOffset.Place;
import io.headgate.kernel.kafka.TopicCatalog.Topic;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.BiFunction;

/**
 * Where reading begins when nothing was read before.
 *
 * <p>{@code earliest}; {@code latest}; {@code timestamp:MS}, the first record of that time or later, by partition;
 * {@code offsets:0=15,1=20}, where partitions that are not named begin at their earliest; or a position's JSON, where topics
 * that it does not know begin at their earliest.
 */
final class StartPosition {
  private static final String TIMESTAMP = "timestamp:";
  private static final String OFFSETS = "offsets:";

  private StartPosition() {}

  static KafkaOffset of(String start, TopicCatalog catalog) {
    SortedMap<String, Topic> topics = catalog.look();
    if (start.equals("earliest")) return placed(topics, (name, topic) -> topic.begins());
    if (start.equals("latest")) return placed(topics, (name, topic) -> topic.ends());
    if (start.startsWith(TIMESTAMP)) {
      Map<String, long[]> found = catalog.offsetsAt(Long.parseLong(start.substring(TIMESTAMP.length())));
      return placed(topics, (name, topic) -> found.get(name));
    }
    if (start.startsWith(OFFSETS)) return placed(topics, (name, topic) -> named(start, name, topic));
    if (start.startsWith("{")) return known(KafkaOffset.parse(start), topics);
    throw new KafkaFailure(KafkaFailure.BAD_START, "cannot start reading at '" + start + "'");
  }

  private static KafkaOffset placed(SortedMap<String, Topic> topics, BiFunction<String, Topic, long[]> next) {
    var out = new TreeMap<String, Place>();
    topics.forEach((name, topic) -> out.put(name, new Place(topic.id(), next.apply(name, topic).clone())));
    return new KafkaOffset(out);
  }

  private static long[] named(String start, String name, Topic topic) {
    long[] next = topic.begins().clone();
    for (String pair : start.substring(OFFSETS.length()).split(",")) {
      int cut = pair.indexOf('=');
      int partition = Integer.parseInt(pair.substring(0, cut).strip());
      if (partition >= next.length)
        throw new KafkaFailure(KafkaFailure.BAD_START, "cannot start reading topic '" + name + "' at partition " + partition
            + ": the topic has " + next.length + " partitions");
      next[partition] = Long.parseLong(pair.substring(cut + 1).strip());
    }
    return next;
  }

  private static KafkaOffset known(KafkaOffset position, SortedMap<String, Topic> topics) {
    var out = new TreeMap<String, Place>(placed(topics, (name, topic) -> topic.begins()).topics);
    out.putAll(position.topics);
    return new KafkaOffset(out);
  }
}
