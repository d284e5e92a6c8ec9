package io.headgate.kernel.postgres;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.headgate.kernel.gate.Reaches;
import org.apache.spark.sql.connector.read.streaming.Offset;

/** A position in a table that is read again and again: how many changes were taken, over all refreshes. */
final class RowsOffset extends Offset implements Reaches {
  private static final int FORMAT = 1;

  final long rows;

  RowsOffset(long rows) {
    this.rows = rows;
  }

  static RowsOffset parse(String json) {
    try {
      JsonNode n = new ObjectMapper().readTree(json);
      if (n.path("format").asInt() != FORMAT)
        throw new IllegalArgumentException("a position of format " + n.path("format") + ", and this release reads " + FORMAT);
      return new RowsOffset(n.get("rows").asLong());
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("not a position in a table: " + json, e);
    }
  }

  @Override public String json() {
    return "{\"format\":" + FORMAT + ",\"rows\":" + rows + "}";
  }

  @Override public boolean reaches(Offset target) {
    return rows >= ((RowsOffset) target).rows;
  }
}
