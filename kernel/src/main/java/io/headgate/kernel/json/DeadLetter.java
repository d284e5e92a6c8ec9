package io.headgate.kernel.json;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/**
 * A record that could not go its way, as the output for dead letters tells of it.
 *
 * @param job the job that wrote it: several may share a topic
 * @param source the source, or the operator at which a row failed
 * @param topic the record's topic; null where a row failed
 * @param row what is known of the row that failed; null where a record did
 * @param size the full length of {@code raw} in bytes, of which a letter shows at most {@link #RAW_LIMIT}
 */
public record DeadLetter(
    String job, String source, String topic, Row row, int partition, long offset, long timestamp, BadRecord.Reason code, String reason,
    long size, byte[] raw) {
  /** A dead letter carries at most this much of its record. */
  public static final int RAW_LIMIT = 256 * 1024;

  /** And so many characters of its reason: Spark's messages quote values whole. */
  private static final int TEXT_LIMIT = 1000;

  private static final JsonFactory JSON = new JsonFactory();

  /**
   * What a letter tells of a row.
   *
   * @param expression the SQL that failed on it; null where none did
   * @param topic the topic of its record; null where nobody knows
   * @param key the key whose event or timer failed; null where it failed for no key
   * @param side which of an operator's two streams it is of; null where there is one
   */
  public record Row(String expression, String topic, String key, String side) {}

  /** @param raw the row as JSON, or as it is where it is nothing but bytes; null where it has no such form */
  public static DeadLetter ofRow(
      String job, String operator, Row row, int partition, long offset, long timestamp, BadRecord why, byte[] raw) {
    return new DeadLetter(
        job, operator, null, row, partition, offset, timestamp, why.reason, why.getMessage(), raw == null ? 0 : raw.length, raw);
  }

  public byte[] encode() {
    var out = new ByteArrayOutputStream(512);
    try (JsonGenerator g = JSON.createGenerator(out)) {
      g.writeStartObject();
      g.writeStringField("job", job);
      g.writeStringField("source", source);
      g.writeStringField("topic", topic);
      g.writeNumberField("partition", partition);
      g.writeNumberField("offset", offset);
      g.writeNumberField("timestamp", timestamp);
      g.writeStringField("code", code.name());
      g.writeStringField("reason", text(reason));
      if (row != null) {
        g.writeStringField("expression", text(row.expression));
        g.writeStringField("record_topic", row.topic);
        if (row.key != null) g.writeStringField("key", row.key);
        if (row.side != null) g.writeStringField("side", row.side);
      }
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

  /** Returns a text that is not too long, in which halves of characters are question marks: JSON has no form for them. */
  private static String text(String of) {
    if (of == null) return null;
    String cut = of.length() <= TEXT_LIMIT ? of : of.substring(0, TEXT_LIMIT) + "…";
    return new String(cut.getBytes(StandardCharsets.UTF_8), StandardCharsets.UTF_8);
  }
}
