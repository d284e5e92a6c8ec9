package io.headgate.kernel.formats.changes;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import io.headgate.kernel.formats.changes.ChangeParts.Part;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import io.headgate.kernel.json.JsonReading;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.spark.sql.types.StructType;

/** Refuses rows of which a database did not log a value: PostgreSQL leaves out large ones that did not change. */
final class Unavailable {
  private static final String MARK = "__debezium_unavailable_value";
  private static final byte[] TEXT = MARK.getBytes(StandardCharsets.ISO_8859_1);
  private static final String BINARY = Base64.getEncoder().encodeToString(TEXT);
  private static final byte[] PACKED = BINARY.getBytes(StandardCharsets.ISO_8859_1);

  private Unavailable() {}

  static void check(Part part, StructType schema) throws BadRecord {
    // Hardly any record has it: the fields are looked through only where the bytes are there.
    if (!contains(part, TEXT) && !contains(part, PACKED)) return;
    try (JsonParser p = JsonReading.JSON.createParser(part.bytes(), part.start(), part.length())) {
      p.nextToken();
      while (p.nextToken() == JsonToken.FIELD_NAME) {
        String name = p.currentName();
        JsonToken token = p.nextToken();
        if (token == JsonToken.VALUE_STRING && isMark(p.getText()) && schema.getFieldIndex(name).isDefined())
          throw new BadRecord(Reason.VALUE_UNAVAILABLE,
              "field '" + name + "': the database did not log the value, since it is large and did not change");
        p.skipChildren();
      }
    } catch (IOException e) {
      throw new BadRecord(Reason.BAD_JSON, String.valueOf(e.getMessage()));
    }
  }

  private static boolean isMark(String text) {
    return text.equals(MARK) || text.equals(BINARY);
  }

  private static boolean contains(Part part, byte[] wanted) {
    byte[] b = part.bytes();
    int last = part.start() + part.length() - wanted.length;
    for (int i = part.start(); i <= last; i++) {
      if (b[i] != wanted[0] || b[i + wanted.length - 1] != wanted[wanted.length - 1]) continue;
      int k = 1;
      while (k < wanted.length && b[i + k] == wanted[k]) k++;
      if (k == wanted.length) return true;
    }
    return false;
  }
}
