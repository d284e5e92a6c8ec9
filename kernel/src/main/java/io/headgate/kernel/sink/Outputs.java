package io.headgate.kernel.sink;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;

/** What each output of a flow is, by its address. */
record Outputs(List<Output> all) implements Serializable {
  enum Kind { FILES, CONSOLE, COUNTED }

  /**
   * @param path the topic's folder, for an embedded topic
   * @param shown how many rows of a batch are shown, beside whatever else is done with them
   */
  record Output(String id, Kind kind, String path, int shown) implements Serializable {}

  static Outputs parse(String json) {
    try {
      var all = new ArrayList<Output>();
      for (JsonNode n : new ObjectMapper().readTree(json))
        all.add(new Output(n.get("id").asText(), Kind.valueOf(n.get("kind").asText().toUpperCase()),
            n.path("path").asText(null), n.path("shown").asInt(0)));
      return new Outputs(all);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("not a list of outputs: " + json, e);
    }
  }
}
