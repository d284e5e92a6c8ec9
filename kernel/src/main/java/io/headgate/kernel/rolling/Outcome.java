package io.headgate.kernel.rolling;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;

/**
 * What came of a roll or of one of its parts.
 *
 * @param staged the size of the rows as they were staged, before that was compressed
 * @param files how many files are visible
 * @param bytes their size
 */
record Outcome(long staged, long rows, long files, long bytes) implements Serializable {
  static final Outcome NONE = new Outcome(0, 0, 0, 0);
  private static final int FORMAT = 1;
  private static final ObjectMapper JSON = new ObjectMapper();

  Outcome plus(Outcome other) {
    return new Outcome(staged + other.staged, rows + other.rows, files + other.files, bytes + other.bytes);
  }

  byte[] toBytes() {
    return JSON.createObjectNode().put("format", FORMAT).put("staged", staged).put("rows", rows).put("files", files)
        .put("bytes", bytes).toString().getBytes(StandardCharsets.UTF_8);
  }

  static Outcome parse(byte[] json) throws IOException {
    JsonNode read = JSON.readTree(json);
    return new Outcome(read.path("staged").asLong(), read.path("rows").asLong(), read.path("files").asLong(), read.path("bytes").asLong());
  }
}
