package io.headgate.kernel.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.headgate.kernel.gate.Reaches;
import io.headgate.kernel.source.StoredPosition;
import java.util.Collections;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import org.apache.spark.sql.connector.read.streaming.Offset;

/**
 * A place in topics on Kafka: by topic, the offset that comes next in each partition.
 *
 * <p>It names Kafka's id of each topic, so that one that was made anew is noticed.
 */
final class KafkaOffset extends Offset implements Reaches {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int FORMAT = 1;

  /**
   * A place in one topic.
   *
   * @param id Kafka's id of the topic
   * @param next the next offset by partition
   */
  record Place(String id, long[] next) {
    /** Returns whether a partition of the topic with this id is known here. */
    boolean knows(String topicId, int partition) {
      return id.equals(topicId) && partition < next.length;
    }
  }

  final SortedMap<String, Place> topics;
  private String json;

  KafkaOffset(Map<String, Place> topics) {
    this.topics = Collections.unmodifiableSortedMap(new TreeMap<>(topics));
  }

  static KafkaOffset parse(String json) {
    return StoredPosition.parse(json, FORMAT, "Kafka", n -> {
      var topics = new TreeMap<String, Place>();
      n.required("topics").fields().forEachRemaining(each -> topics.put(each.getKey(), place(each.getValue())));
      return new KafkaOffset(topics);
    });
  }

  private static Place place(JsonNode n) {
    JsonNode list = n.required("next");
    long[] next = new long[list.size()];
    for (int i = 0; i < next.length; i++) next[i] = list.get(i).asLong();
    return new Place(n.required("id").asText(), next);
  }

  @Override public String json() {
    if (json != null) return json;
    ObjectNode out = JSON.createObjectNode().put("format", FORMAT);
    ObjectNode all = out.putObject("topics");
    topics.forEach((name, place) -> {
      ArrayNode next = all.putObject(name).put("id", place.id).putArray("next");
      for (long each : place.next) next.add(each);
    });
    json = out.toString();
    return json;
  }

  /**
   * Of a topic that was made anew since the target was set nothing is left to read: it counts as reached. A topic or a
   * partition that this place does not know yet does not.
   */
  @Override public boolean reaches(Offset target) {
    for (var each : ((KafkaOffset) target).topics.entrySet()) {
      Place at = topics.get(each.getKey());
      Place wanted = each.getValue();
      if (at == null) return false;
      if (!at.id.equals(wanted.id)) continue;
      if (at.next.length < wanted.next.length) return false;
      for (int i = 0; i < wanted.next.length; i++) if (at.next[i] < wanted.next[i]) return false;
    }
    return true;
  }
}
