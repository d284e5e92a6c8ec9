package io.headgate.kernel.pulsar;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.common.schema.SchemaInfo;
import org.apache.pulsar.common.schema.SchemaType;

/**
 * A schema that a topic carries, as the admin service tells it.
 *
 * <p>Producers name it, so that readers who go by the schema of each message understand ours; rows are encoded already and
 * are handed through as they are.
 *
 * @param type {@code JSON} or {@code STRING}
 */
record TopicSchema(String topic, String type, String data, HashMap<String, String> properties) implements Serializable {
  /** Returns the schema to write with, or null where it is that of plain bytes; throws where rows cannot have it. */
  static TopicSchema parse(String topic, JsonNode told) {
    String type = told.path("type").asText();
    if (type.equals("NONE") || type.equals("BYTES")) return null;
    if (!type.equals("JSON") && !type.equals("STRING"))
      throw new PulsarFailure(PulsarFailure.REFUSED,
          "cannot write to topic '" + topic + "': it carries a schema of type " + type + ", and rows are JSON text");
    var properties = new HashMap<String, String>();
    told.path("properties").fields().forEachRemaining(each -> properties.put(each.getKey(), each.getValue().asText()));
    return new TopicSchema(topic, type, told.path("data").asText(""), properties);
  }

  Schema<byte[]> open() {
    return new Named(SchemaInfo.builder().name(topic).type(SchemaType.valueOf(type))
        .schema(data.getBytes(StandardCharsets.UTF_8)).properties(Map.copyOf(properties)).build());
  }

  /** Hands bytes through under the name of a schema. */
  private record Named(SchemaInfo info) implements Schema<byte[]> {
    @Override public byte[] encode(byte[] message) { return message; }

    @Override public byte[] decode(byte[] bytes) { return bytes; }

    @Override public SchemaInfo getSchemaInfo() { return info; }

    @Override public Schema<byte[]> clone() { return this; }
  }
}
