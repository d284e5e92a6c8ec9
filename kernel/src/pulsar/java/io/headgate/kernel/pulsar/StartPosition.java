package io.headgate.kernel.pulsar;

import io.headgate.kernel.pulsar.PulsarOffset.Standpoint;
import io.headgate.kernel.pulsar.TopicCatalog.Topic;
import java.util.ArrayList;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.Function;

/**
 * Where reading begins when nothing was read before.
 *
 * <p>{@code earliest}; {@code latest}; {@code timestamp:MS}, the first message published then or later, by partition;
 * {@code messages:0=12:5,1=13:0}, where partitions that are not named begin at their earliest; or a position's JSON, where
 * topics that it does not know begin at their earliest.
 */
final class StartPosition {
  private static final String TIMESTAMP = "timestamp:";
  private static final String MESSAGES = "messages:";

  private StartPosition() {}

  static PulsarOffset of(String start, TopicCatalog catalog) {
    SortedMap<String, Topic> topics = catalog.look();
    if (start.equals("earliest")) return placed(topics, StartPosition::firsts);
    if (start.equals("latest")) return placed(topics, topic -> topic.partitions().stream().map(Ledgers::end).toList());
    if (start.startsWith(TIMESTAMP)) {
      long time = Long.parseLong(start.substring(TIMESTAMP.length()));
      return placed(topics, topic -> catalog.placesAt(topic, time));
    }
    if (start.startsWith(MESSAGES)) return placed(topics, topic -> named(start, topic));
    if (start.startsWith("{")) return known(PulsarOffset.parse(start), topics);
    throw new PulsarFailure(PulsarFailure.BAD_START, "cannot start reading at '" + start + "'");
  }

  private static PulsarOffset placed(SortedMap<String, Topic> topics, Function<Topic, List<Place>> next) {
    var out = new TreeMap<String, Standpoint>();
    topics.forEach((name, topic) -> out.put(name, new Standpoint(topic.partitioned(), List.copyOf(next.apply(topic)))));
    return new PulsarOffset(out);
  }

  private static List<Place> firsts(Topic topic) {
    return topic.partitions().stream().map(Ledgers::first).toList();
  }

  private static List<Place> named(String start, Topic topic) {
    var next = new ArrayList<>(firsts(topic));
    for (String pair : start.substring(MESSAGES.length()).split(",")) {
      int cut = pair.indexOf('=');
      int partition = Integer.parseInt(pair.substring(0, cut).strip());
      if (partition >= next.size())
        throw new PulsarFailure(PulsarFailure.BAD_START, "cannot start reading topic '" + topic.name().local()
            + "' at partition " + partition + ": the topic has " + next.size() + " partitions");
      next.set(partition, Place.parse(pair.substring(cut + 1)));
    }
    return next;
  }

  private static PulsarOffset known(PulsarOffset position, SortedMap<String, Topic> topics) {
    var out = new TreeMap<String, Standpoint>(placed(topics, StartPosition::firsts).topics);
    out.putAll(position.topics);
    return new PulsarOffset(out);
  }
}
