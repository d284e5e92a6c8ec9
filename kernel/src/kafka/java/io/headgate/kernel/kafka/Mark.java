package io.headgate.kernel.kafka;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.Serializable;

/**
 * What a task's transaction says of itself: the epoch whose rows it holds.
 *
 * @param tasks how many tasks shared the epoch's rows
 * @param topic one of the topics that were written to, which tells whether a task still writes the same outputs
 */
record Mark(long epoch, int tasks, String topic) implements Serializable {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int FORMAT = 1;

  Mark later(Mark other) {
    return other.epoch > epoch ? other : this;
  }

  String json() {
    return JSON.createObjectNode()
        .put("format", FORMAT).put("epoch", epoch).put("tasks", tasks).put("topic", topic).toString();
  }

  static Mark parse(String json) {
    try {
      JsonNode n = JSON.readTree(json);
      if (n.path("format").asInt() == FORMAT)
        return new Mark(n.get("epoch").asLong(), n.get("tasks").asInt(), n.get("topic").asText());
    } catch (JsonProcessingException | NullPointerException e) {
      // Told below, as what it is.
    }
    throw new IllegalStateException("cannot read the mark of an epoch: its format must be " + FORMAT + ", got " + json);
  }
}
