package io.headgate.kernel.folder;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.headgate.kernel.gate.Reaches;
import org.apache.spark.sql.connector.read.streaming.Offset;

/**
 * A place in a folder of data files: the next byte to read of the file with a number in a ledger.
 *
 * <p>The place behind the last file is byte 0 of the number that comes next.
 */
final class FolderOffset extends Offset implements Reaches {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int FORMAT = 1;

  final String ledger;
  final long file;
  final long at;

  FolderOffset(String ledger, long file, long at) {
    this.ledger = ledger;
    this.file = file;
    this.at = at;
  }

  static FolderOffset parse(String json) {
    try {
      JsonNode n = JSON.readTree(json);
      if (n.path("format").asInt() != FORMAT)
        throw new IllegalArgumentException("a position of format " + n.path("format") + ", and this release reads " + FORMAT);
      return new FolderOffset(n.get("ledger").asText(), n.get("file").asLong(), n.get("byte").asLong());
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("not a position in a folder: " + json, e);
    }
  }

  @Override public String json() {
    return "{\"format\":" + FORMAT + ",\"ledger\":\"" + ledger + "\",\"file\":" + file + ",\"byte\":" + at + "}";
  }

  @Override public boolean reaches(Offset target) {
    FolderOffset t = (FolderOffset) target;
    return file > t.file || (file == t.file && at >= t.at);
  }
}
