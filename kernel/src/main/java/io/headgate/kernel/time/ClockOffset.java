package io.headgate.kernel.time;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collections;
import java.util.SortedMap;
import java.util.TreeMap;
import org.apache.spark.sql.connector.read.streaming.Offset;

/**
 * How far a stream's clock has come. It lies in Spark's offset log, so that a restart knows the time of every stream.
 *
 * <p>{@code max} is the event time that the stream is known to have reached, {@code nudged} by how many milliseconds the clock
 * is ahead of that, {@code partitions} the greatest event time of each partition that has brought an event, and {@code n}
 * counts the clock's moves: two of them are never the same place. Format 1 knew no partitions.
 */
final class ClockOffset extends Offset {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int FORMAT = 2;

  static final ClockOffset START = new ClockOffset(GreatestTimes.NONE, 0, 0, Collections.emptySortedMap());

  final long max;
  final int nudged;
  final long n;
  final SortedMap<String, Long> partitions;

  ClockOffset(long max, int nudged, long n, SortedMap<String, Long> partitions) {
    this.max = max;
    this.nudged = nudged;
    this.n = n;
    this.partitions = partitions;
  }

  static ClockOffset parse(String json) {
    try {
      JsonNode node = JSON.readTree(json);
      int format = node.path("format").asInt();
      if (format < 1 || format > FORMAT)
        throw new IllegalArgumentException("a clock of format " + node.path("format") + ", and this release reads 1 to " + FORMAT);
      long max = node.get("max").isNull() ? GreatestTimes.NONE : node.get("max").asLong();
      return new ClockOffset(max, node.path("nudged").asInt(0), node.get("n").asLong(), times(node.path("partitions")));
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("not the place of a clock: " + json, e);
    }
  }

  private static SortedMap<String, Long> times(JsonNode node) {
    var out = new TreeMap<String, Long>();
    node.fields().forEachRemaining(each -> out.put(each.getKey(), each.getValue().asLong()));
    return Collections.unmodifiableSortedMap(out);
  }

  /** @param json an object: the greatest event time by partition */
  static SortedMap<String, Long> parseTimes(String json) {
    try {
      return times(JSON.readTree(json));
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("not the times of partitions: " + json, e);
    }
  }

  /** Returns the next place with this time. */
  ClockOffset to(Reading reading, SortedMap<String, Long> partitions) {
    return new ClockOffset(reading.max(), reading.nudged(), n + 1, partitions);
  }

  Reading reading() {
    return new Reading(max, nudged);
  }

  @Override public String json() {
    ObjectNode out = JSON.createObjectNode().put("format", FORMAT);
    if (max == GreatestTimes.NONE) out.putNull("max");
    else out.put("max", max);
    out.put("nudged", nudged).put("n", n);
    ObjectNode times = out.putObject("partitions");
    partitions.forEach(times::put);
    return out.toString();
  }
}
