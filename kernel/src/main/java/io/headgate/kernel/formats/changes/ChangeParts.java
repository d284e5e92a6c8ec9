package io.headgate.kernel.formats.changes;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import io.headgate.kernel.json.JsonReading;
import io.headgate.kernel.json.Utf8;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/**
 * The parts of a change in Debezium's envelope, in any order, with or without the schema that Kafka Connect wraps around it.
 *
 * <p>Mutable and reused from record to record; serves one thread.
 */
final class ChangeParts {
  /** Where a part lies in an array of bytes. */
  record Part(byte[] bytes, int start, int length) {}

  /** Null where the record names none. */
  String op;
  /** The row before and after the change, and the schema of both; null where there is none. */
  Part before;
  Part after;
  Part schema;
  /** Whether the record is wrapped around nothing. */
  boolean empty;
  /** What the record says of where the change comes from: the text of each value that is not null. */
  final Map<String, String> source = new HashMap<>();

  private byte[] from;
  private int start;

  void read(byte[] from, int start, int length) throws BadRecord {
    this.from = from;
    this.start = start;
    op = null;
    before = after = schema = null;
    empty = false;
    source.clear();
    // What JSON's parser takes for another encoding is refused here.
    Utf8.checkJson(from, start, length);
    try (JsonParser p = JsonReading.JSON.createParser(from, start, length)) {
      if (p.nextToken() != JsonToken.START_OBJECT)
        throw new BadRecord(Reason.NOT_AN_OBJECT, "expected an object, found " + JsonReading.found(p));
      fields(p, true);
      if (p.nextToken() != null)
        throw new BadRecord(Reason.BAD_JSON, "more than one value: found " + JsonReading.found(p) + " after the object");
    } catch (JsonProcessingException e) {
      throw JsonReading.badJson(e);
    } catch (IOException e) {
      throw new BadRecord(Reason.BAD_JSON, String.valueOf(e.getMessage()));
    }
  }

  private void fields(JsonParser p, boolean outer) throws IOException, BadRecord {
    while (p.nextToken() != JsonToken.END_OBJECT) {
      String name = p.currentName();
      JsonToken token = p.nextToken();
      switch (name) {
        case "payload" -> {
          if (!outer) p.skipChildren();
          else if (token == JsonToken.START_OBJECT) fields(p, false);
          else if (token == JsonToken.VALUE_NULL) empty = true;
          else throw JsonReading.wrong(p, "payload", "an object");
        }
        case "schema" -> schema = outer ? part(p, name) : null;
        case "before" -> before = part(p, name);
        case "after" -> after = part(p, name);
        case "source" -> source(p);
        case "op" -> {
          if (token == JsonToken.VALUE_NULL) op = null;
          else if (token == JsonToken.VALUE_STRING) op = p.getText();
          else throw JsonReading.wrong(p, name, "a string");
        }
        default -> p.skipChildren();
      }
    }
  }

  private Part part(JsonParser p, String name) throws IOException, BadRecord {
    JsonToken token = p.currentToken();
    if (token == JsonToken.VALUE_NULL) return null;
    if (token == JsonToken.VALUE_STRING && !name.equals("schema")) {
      // MongoDB's connector writes a document as text.
      byte[] text = p.getText().getBytes(StandardCharsets.UTF_8);
      return new Part(text, 0, text.length);
    }
    if (token != JsonToken.START_OBJECT) throw JsonReading.wrong(p, name, "an object");
    int at = (int) p.currentTokenLocation().getByteOffset();
    p.skipChildren();
    return new Part(from, start + at, (int) p.currentLocation().getByteOffset() - at);
  }

  private void source(JsonParser p) throws IOException, BadRecord {
    if (p.currentToken() == JsonToken.VALUE_NULL) return;
    if (p.currentToken() != JsonToken.START_OBJECT) throw JsonReading.wrong(p, "source", "an object");
    while (p.nextToken() != JsonToken.END_OBJECT) {
      String name = p.currentName();
      JsonToken token = p.nextToken();
      if (token.isScalarValue() && token != JsonToken.VALUE_NULL) source.put(name, p.getText());
      else p.skipChildren();
    }
  }
}
