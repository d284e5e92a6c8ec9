package io.headgate.kernel.source;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.headgate.kernel.CodedFailure;
import java.util.function.Function;

/** A position as a checkpoint has it: JSON that may be corrupted, of another release, or of another kind of topic. */
public final class StoredPosition {
  private static final ObjectMapper JSON = new ObjectMapper();

  private StoredPosition() {}

  /**
   * Returns what a position's JSON says.
   *
   * @param on the kind of topics, for the message
   * @param read may throw for fields that are missing or of another kind
   */
  public static <T> T parse(String json, int format, String on, Function<JsonNode, T> read) {
    JsonNode n;
    try {
      n = JSON.readTree(json);
    } catch (JsonProcessingException e) {
      throw unreadable(on, "it is corrupted: " + json, e);
    }
    if (n.path("format").asInt() != format)
      throw unreadable(on, "its format is " + n.path("format") + ", and this release reads " + format, null);
    try {
      return read.apply(n);
    } catch (RuntimeException e) {
      throw unreadable(on, "it is corrupted, or of another kind of topic: " + json, e);
    }
  }

  private static CodedFailure unreadable(String on, String problem, Throwable cause) {
    return new CodedFailure(CodedFailure.POSITION_UNREADABLE, "cannot read a position on " + on + ": " + problem, cause);
  }
}
