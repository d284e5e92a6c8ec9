package io.headgate.kernel.json;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;

/**
 * A record that could not go its way, as the output for dead letters tells of it.
 *
 * @param source the source, or the operator at which a row failed
 * @param topic the record's topic; null where a row failed, which may be of any
 * @param size the full length of {@code raw} in bytes, of which a letter shows at most {@link #RAW_LIMIT}
 */
public record DeadLetter(
    String source, String topic, int partition, long offset, long timestamp, BadRecord.Reason code, String reason,
    long size, byte[] raw) {
  /** A dead letter carries at most this much of its record. */
  public static final int RAW_LIMIT = 256 * 1024;

  private static final JsonFactory JSON = new JsonFactory();

  public byte[] encode() {
    var out = new ByteArrayOutputStream(512);
    try (JsonGenerator g = JSON.createGenerator(out)) {
      g.writeStartObject();
      g.writeStringField("source", source);
      g.writeStringField("topic", topic);
      g.writeNumberField("partition", partition);
      g.writeNumberField("offset", offset);
      g.writeNumberField("timestamp", timestamp);
      g.writeStringField("code", code.name());
      g.writeStringField("reason", reason);
      g.writeNumberField("bytes", size);
      g.writeFieldName("raw");
      if (raw == null) g.writeNull();
      else g.writeBinary(raw, 0, Math.min(raw.length, RAW_LIMIT));
      g.writeEndObject();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return out.toByteArray();
  }
}
