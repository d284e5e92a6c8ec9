package io.headgate.kernel.pulsar;

import com.fasterxml.jackson.databind.JsonNode;
import io.headgate.kernel.sink.LogSpec;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import java.util.function.Function;

/** What the driver asks a cluster before a query's first epoch. */
final class Preparation {
  static final String DEDUPLICATION_OFF = "DEDUPLICATION_OFF";
  static final String FORGOTTEN = "DEDUPLICATION_FORGOTTEN";

  private static final String MEMORY = "brokerDeduplicationProducerInactivityTimeoutMinutes";
  /** What brokers have unless they are told otherwise (Pulsar 4.0.8). */
  private static final long MEMORY_MINUTES = 360;

  private final LogSpec spec;
  private final ClientOptions client;
  private final AdminApi admin;
  private final List<PulsarTopic> topics;

  Preparation(LogSpec spec, ClientOptions client, AdminApi admin) {
    this.spec = spec;
    this.client = client;
    this.admin = admin;
    topics = spec.topics().values().stream().distinct().map(PulsarTopic::parse).sorted().toList();
  }

  /** Returns what is written to, by the address of the output; throws where a topic is missing, and makes none by the way. */
  Map<Integer, Destination> destinations() {
    List<Optional<JsonNode>> partitions = ask(topic -> "persistent/" + topic.path() + "/partitions");
    var missing = new TreeSet<PulsarTopic>();
    for (int i = 0; i < topics.size(); i++) if (partitions.get(i).isEmpty()) missing.add(topics.get(i));
    if (!missing.isEmpty())
      throw new PulsarFailure(PulsarFailure.TOPIC_MISSING, "cannot write to " + (missing.size() == 1 ? "topic " : "topics ")
          + names(missing) + ": not found at " + client.service());
    List<Optional<JsonNode>> schemas = ask(topic -> "schemas/" + topic.path() + "/schema");
    List<Optional<JsonNode>> limits = ask(topic -> "persistent/" + topic.path() + "/maxMessageSize");
    var found = new HashMap<String, Destination>();
    for (int i = 0; i < topics.size(); i++) {
      PulsarTopic topic = topics.get(i);
      TopicSchema schema = schemas.get(i).map(told -> TopicSchema.parse(topic.local(), told)).orElse(null);
      found.put(topic.full(), new Destination(
          topic, partitions.get(i).get().path("partitions").asInt(), schema, limits.get(i).map(JsonNode::asInt).orElse(0)));
    }
    var out = new HashMap<Integer, Destination>();
    spec.topics().forEach((output, topic) -> out.put(output, found.get(topic)));
    return out;
  }

  /** Throws where brokers do not drop the doubles of a topic. */
  void checkDeduplication() {
    List<Optional<JsonNode>> told = ask(topic -> "persistent/" + topic.path() + "/deduplicationEnabled?applied=true");
    var off = new ArrayList<PulsarTopic>();
    for (int i = 0; i < topics.size(); i++)
      if (!told.get(i).map(JsonNode::asBoolean).orElse(false)) off.add(topics.get(i));
    if (off.isEmpty()) return;
    throw new PulsarFailure(DEDUPLICATION_OFF, "cannot write exactly once to " + (off.size() == 1 ? "topic " : "topics ")
        + names(off) + ": deduplication is off there, at " + client.service());
  }

  /** Throws where an epoch may be half written, and brokers may have forgotten which half. */
  void checkMemory(Instant now) {
    if (spec.query().unfinishedSince() == 0) return;
    Duration idle = Duration.between(Instant.ofEpochMilli(spec.query().unfinishedSince()), now);
    long minutes = memoryMinutes();
    if (idle.compareTo(Duration.ofMinutes(minutes)) < 0) return;
    throw new PulsarFailure(FORGOTTEN, "cannot finish the last batch of run " + spec.query().lineage() + ": it was started "
        + idle.toMinutes() + " minutes ago, and the brokers at " + client.service() + " remember written rows for "
        + minutes + " minutes (" + MEMORY + ")");
  }

  private long memoryMinutes() {
    JsonNode told;
    try {
      told = admin.get("brokers/configuration/runtime").path(MEMORY);
    } catch (PulsarFailure e) {
      // Not every user may read a broker's settings.
      if (e.code.equals(PulsarFailure.REFUSED)) return MEMORY_MINUTES;
      throw e;
    }
    return told.asLong(MEMORY_MINUTES);
  }

  private List<Optional<JsonNode>> ask(Function<PulsarTopic, String> path) {
    return admin.findAll(topics.stream().map(path).toList());
  }

  private static String names(Iterable<PulsarTopic> topics) {
    var out = new ArrayList<String>();
    for (PulsarTopic topic : topics) out.add("'" + topic.local() + "'");
    return String.join(", ", out);
  }
}
