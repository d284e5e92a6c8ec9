package io.headgate.kernel.process;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.spark.sql.connector.read.streaming.Offset;

/** How often the process operators of a run were woken, and when it was last, in epoch milliseconds. */
final class WakeOffset extends Offset {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int FORMAT = 1;

  final long n;
  private final long at;

  WakeOffset(long n, long at) {
    this.n = n;
    this.at = at;
  }

  static WakeOffset parse(String json) {
    try {
      JsonNode node = JSON.readTree(json);
      int format = node.path("format").asInt();
      if (format != FORMAT)
        throw new IllegalArgumentException("wakes of format " + node.path("format") + ", and this release reads " + FORMAT);
      return new WakeOffset(node.get("n").asLong(), node.get("at").asLong());
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("not the position of wakes: " + json, e);
    }
  }

  WakeOffset next(long now) {
    return new WakeOffset(n + 1, now);
  }

  @Override public String json() {
    return JSON.createObjectNode().put("format", FORMAT).put("n", n).put("at", at).toString();
  }
}
