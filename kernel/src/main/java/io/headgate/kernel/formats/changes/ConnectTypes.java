package io.headgate.kernel.formats.changes;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.headgate.kernel.formats.changes.ChangeParts.Part;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import java.io.IOException;
import java.io.Serializable;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/** The types that Kafka Connect's schema gives the fields of the present record; serves one thread. */
final class ConnectTypes implements Serializable {
  /**
   * A type that says more than its JSON.
   *
   * @param name such as {@code io.debezium.time.MicroTimestamp}
   * @param scale of decimals
   */
  record Named(String name, int scale) {}

  /** So many schemas are kept: a topic has a new one after each change of its table. */
  private static final int KEPT = 16;
  private static final ObjectMapper JSON = new ObjectMapper();

  private record Read(byte[] schema, Map<String, Named> fields) {}

  private transient Read[] kept;
  private transient int next;
  private transient Map<String, Named> present;

  /**
   * Takes the schema of the next record.
   *
   * @param schema null where the record has none
   */
  void use(Part schema) throws BadRecord {
    present = schema == null ? null : find(schema).fields;
  }

  /** Returns the type of a field by its path, such as {@code price} or {@code visits[0].at}; null where it is a plain one. */
  Named find(String field) {
    if (present == null) return null;
    return present.get(field.indexOf('[') < 0 ? field : field.replaceAll("\\[\\d+\\]", "[]"));
  }

  private Read find(Part part) throws BadRecord {
    if (kept == null) kept = new Read[KEPT];
    for (Read each : kept)
      if (each != null && Arrays.equals(each.schema, 0, each.schema.length, part.bytes(), part.start(), part.start() + part.length()))
        return each;
    byte[] schema = Arrays.copyOfRange(part.bytes(), part.start(), part.start() + part.length());
    var fields = new HashMap<String, Named>();
    try {
      JsonNode root = JSON.readTree(schema);
      JsonNode row = root;
      for (JsonNode each : root.path("fields")) {
        String name = each.path("field").asText();
        if (name.equals("after") || (name.equals("before") && row == root)) row = each;
      }
      add(row, "", fields);
    } catch (IOException e) {
      throw new BadRecord(Reason.BAD_JSON, "the schema: " + e.getMessage());
    }
    return kept[next++ % KEPT] = new Read(schema, fields);
  }

  private static void add(JsonNode struct, String prefix, Map<String, Named> into) {
    for (JsonNode field : struct.path("fields")) field(field, prefix + field.path("field").asText(), into);
  }

  private static void field(JsonNode type, String path, Map<String, Named> into) {
    if (type.hasNonNull("name"))
      into.put(path, new Named(type.get("name").asText(), type.path("parameters").path("scale").asInt()));
    if (type.path("type").asText().equals("array")) field(type.path("items"), path + "[]", into);
    else add(type, path + ".", into);
  }
}
