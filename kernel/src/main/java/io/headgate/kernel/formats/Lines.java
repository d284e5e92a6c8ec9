package io.headgate.kernel.formats;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Locale;

/** How records lie in a topic that holds each on a line. */
public enum Lines {
  /** The topic holds records as they are. */
  NONE,

  /** A record is the text of a line: it has no end of a line in it. */
  TEXT,

  /** A record is any bytes, and its line is their base64. */
  BASE64;

  /** Returns what a source or an output of a plan says. */
  public static Lines of(JsonNode node) {
    return valueOf(node.path("lines").asText("none").toUpperCase(Locale.ROOT));
  }
}
