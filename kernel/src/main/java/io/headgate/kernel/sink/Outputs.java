package io.headgate.kernel.sink;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** What each output of a flow is, by its address. */
record Outputs(List<Output> all) implements Serializable {
  enum Kind {
    FILES(null),
    CONSOLE(null),
    COUNTED(null),
    KAFKA("io.headgate.kernel.kafka.KafkaWriters"),
    PULSAR("io.headgate.kernel.pulsar.PulsarWriters"),
    POSTGRES("io.headgate.kernel.postgres.PostgresWriters"),
    FOLDER("io.headgate.kernel.rolling.FolderWriters");

    private final String writers;

    Kind(String writers) {
      this.writers = writers;
    }

    /** Returns the class that writes outputs of this kind, a {@link LogWriters}; null where this sink writes by itself. */
    String writers() {
      return writers;
    }
  }

  /**
   * @param path the topic's folder, for an embedded topic
   * @param cluster which of the sink's clusters the topic is on, for a topic of a log
   * @param shown how many rows of a batch are shown, beside whatever else is done with them
   * @param rows what its rows are, which are objects in JSON; null where they have another form
   */
  record Output(String id, Kind kind, String path, int cluster, String topic, int shown, LogSpec.Rows rows)
      implements Serializable {}

  static Outputs parse(String json) {
    try {
      var all = new ArrayList<Output>();
      for (JsonNode n : new ObjectMapper().readTree(json))
        all.add(new Output(n.get("id").asText(), Kind.valueOf(n.get("kind").asText().toUpperCase(Locale.ROOT)),
            n.path("path").asText(null), n.path("cluster").asInt(-1), n.path("topic").asText(null), n.path("shown").asInt(0),
            n.hasNonNull("columns") ? rows(n) : null));
      return new Outputs(all);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("not a list of outputs: " + json, e);
    }
  }

  private static LogSpec.Rows rows(JsonNode n) {
    return new LogSpec.Rows((StructType) DataType.fromJson(n.get("columns").asText()), n.path("key").asText(null));
  }
}
