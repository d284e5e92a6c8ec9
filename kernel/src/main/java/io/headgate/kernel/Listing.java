package io.headgate.kernel;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.List;

/**
 * A list as one text, for Python to take in one call.
 *
 * <p>Python iterates over a Java list call by call, and learns of its end by an exception that PySpark looks up by some
 * 60 more calls: a feed that is asked ten times a second took a tenth of two cores so.
 */
public final class Listing {
  private static final ObjectMapper JSON = new ObjectMapper();

  private Listing() {}

  /** Returns a list of texts, or of arrays of texts, as JSON. */
  public static String of(List<?> list) {
    if (list.isEmpty()) return "[]";
    try {
      return JSON.writeValueAsString(list);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(e);
    }
  }
}
