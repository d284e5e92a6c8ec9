package io.headgate.kernel.time;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.spark.sql.connector.read.streaming.Offset;

/**
 * How far a stream's clock has come. It lies in Spark's offset log, so that a restart knows the time of every stream.
 *
 * <p>{@code max} is the greatest event time that the stream is known to have reached, {@code nudged} by how many
 * milliseconds the clock is ahead of that, and {@code n} counts the clock's moves: two of them are never the same place.
 */
final class ClockOffset extends Offset {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int FORMAT = 1;

  static final ClockOffset START = new ClockOffset(GreatestTime.NONE, 0, 0);

  final long max;
  final int nudged;
  final long n;

  ClockOffset(long max, int nudged, long n) {
    this.max = max;
    this.nudged = nudged;
    this.n = n;
  }

  static ClockOffset parse(String json) {
    try {
      JsonNode node = JSON.readTree(json);
      if (node.path("format").asInt() != FORMAT)
        throw new IllegalArgumentException("a clock of format " + node.path("format") + ", and this release reads " + FORMAT);
      long max = node.get("max").isNull() ? GreatestTime.NONE : node.get("max").asLong();
      return new ClockOffset(max, node.path("nudged").asInt(0), node.get("n").asLong());
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("not the place of a clock: " + json, e);
    }
  }

  /** Returns the next place with this time. */
  ClockOffset to(Reading reading) {
    return new ClockOffset(reading.max(), reading.nudged(), n + 1);
  }

  Reading reading() {
    return new Reading(max, nudged);
  }

  @Override public String json() {
    return "{\"format\":" + FORMAT + ",\"max\":" + (max == GreatestTime.NONE ? "null" : Long.toString(max))
        + ",\"nudged\":" + nudged + ",\"n\":" + n + "}";
  }
}
