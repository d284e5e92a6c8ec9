package io.headgate.kernel.pulsar;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.headgate.kernel.gate.Reaches;
import io.headgate.kernel.source.StoredPosition;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import org.apache.spark.sql.connector.read.streaming.Offset;

/** A place in topics on Pulsar: by the topic's full name, the entry that comes next in each partition. */
final class PulsarOffset extends Offset implements Reaches {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int FORMAT = 1;

  /**
   * A place in one topic.
   *
   * @param partitioned whether it has partitions; a plain topic has one place
   * @param next by partition
   */
  record Standpoint(boolean partitioned, List<Place> next) {
    /** Returns whether a partition of such a topic is known here. */
    boolean knows(boolean split, int partition) {
      return partitioned == split && partition < next.size();
    }
  }

  final SortedMap<String, Standpoint> topics;
  private String json;

  PulsarOffset(Map<String, Standpoint> topics) {
    this.topics = Collections.unmodifiableSortedMap(new TreeMap<>(topics));
  }

  static PulsarOffset parse(String json) {
    return StoredPosition.parse(json, FORMAT, "Pulsar", n -> {
      var topics = new TreeMap<String, Standpoint>();
      n.required("topics").fields().forEachRemaining(each -> topics.put(each.getKey(), standpoint(each.getValue())));
      return new PulsarOffset(topics);
    });
  }

  private static Standpoint standpoint(JsonNode n) {
    var next = new ArrayList<Place>();
    for (JsonNode each : n.required("next")) next.add(Place.parse(each.asText()));
    return new Standpoint(n.required("partitioned").asBoolean(), List.copyOf(next));
  }

  @Override public String json() {
    if (json != null) return json;
    ObjectNode out = JSON.createObjectNode().put("format", FORMAT);
    ObjectNode all = out.putObject("topics");
    topics.forEach((name, at) -> {
      ArrayNode next = all.putObject(name).put("partitioned", at.partitioned).putArray("next");
      for (Place each : at.next) next.add(each.toString());
    });
    json = out.toString();
    return json;
  }

  /**
   * Of a topic that was made anew with or without partitions since the target was set nothing is left to read: it counts as
   * reached. A topic or a partition that this place does not know yet does not.
   */
  @Override public boolean reaches(Offset target) {
    for (var each : ((PulsarOffset) target).topics.entrySet()) {
      Standpoint at = topics.get(each.getKey());
      Standpoint wanted = each.getValue();
      if (at == null) return false;
      if (at.partitioned != wanted.partitioned) continue;
      if (at.next.size() < wanted.next.size()) return false;
      for (int i = 0; i < wanted.next.size(); i++) if (at.next.get(i).compareTo(wanted.next.get(i)) < 0) return false;
    }
    return true;
  }
}
