package io.headgate.kernel.formats.changes;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.JsonNode;
import io.headgate.kernel.formats.ChangeDecoder;
import io.headgate.kernel.formats.changes.ChangeParts.Part;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import io.headgate.kernel.json.JsonReading;
import io.headgate.kernel.json.MessageKey;
import io.headgate.kernel.rows.Layout;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Reads Debezium's envelope: the row before and after a change, the operation, and where it stands in the database's log.
 *
 * <p>A row of a stream is what the change left, or of a deletion what it ended. One decoder serves one thread.
 */
public final class DebeziumDecoder implements ChangeDecoder {
  private static final String MOVED = "a flattened record is read with format \"json\"";

  private final StructType schema;
  /** Null for a stream. */
  private final List<String> key;
  private final JsonReading.Struct row;
  /** The key's columns alone: of a row before a change there may be no others. */
  private final JsonReading.Struct left;
  private final int[] ordinals;
  /** Whether the last column is the operation. */
  private final boolean told;
  private final ConnectTypes types;
  private final MessageKey messageKey;
  private transient ChangeParts parts;
  private transient UnsafeProjection pack;
  private transient UnsafeProjection packLeft;
  private transient boolean deleted;
  private transient byte[] position;
  private transient UnsafeRow before;

  /**
   * @param format its options: {@code op}, {@code timestamps}, {@code decimals}
   * @param key the key of a table's rows; null for a stream
   */
  public DebeziumDecoder(JsonNode format, StructType schema, List<String> key) {
    this.schema = schema;
    this.key = key;
    types = new ConnectTypes();
    String unit = format.path("timestamps").asText("");
    var forms = new ConnectForms(
        types, unit.isEmpty() || unit.equals("null") ? null : ConnectForms.Unit.valueOf(unit.toUpperCase(Locale.ROOT)),
        format.path("decimals").asText("").equals("base64"));
    told = format.hasNonNull("op");
    row = new JsonReading.Struct(told ? first(schema, schema.length() - 1) : schema, forms);
    if (key == null) {
      ordinals = null;
      left = null;
      messageKey = null;
      return;
    }
    ordinals = key.stream().mapToInt(schema::fieldIndex).toArray();
    var columns = new StructType();
    for (int i : ordinals) columns = columns.add(schema.fields()[i]);
    left = new JsonReading.Struct(columns.asNullable(), forms);
    Layout layout = Layout.of(schema);
    messageKey = new MessageKey(schema, key.stream().map(layout::find).toList(), forms);
  }

  private static StructType first(StructType schema, int count) {
    return new StructType(Arrays.copyOf(schema.fields(), count));
  }

  @Override public UnsafeRow decode(byte[] from, int start, int length) throws BadRecord {
    if (parts == null) parts = new ChangeParts();
    deleted = false;
    position = null;
    before = null;
    parts.read(from, start, length);
    if (parts.empty) return null;
    if (parts.op == null) throw new BadRecord(Reason.BAD_CHANGE, "the record has no 'op', so it is not a change of Debezium; " + MOVED);
    types.use(parts.schema);
    return switch (parts.op) {
      case "c", "r", "u" -> changed();
      case "d" -> deleted();
      case "t" -> throw new BadRecord(Reason.TRUNCATED,
          "all rows of the source table were deleted at once, and the change names none of them");
      case "m" -> throw new BadRecord(Reason.BAD_CHANGE, "a logical message is not a change of a row");
      default -> throw new BadRecord(Reason.BAD_CHANGE, "op must be c, u, d, r, t or m, got '" + shown(parts.op) + "'");
    };
  }

  private static String shown(String text) {
    return text.length() > 40 ? text.substring(0, 40) + "…" : text;
  }

  private UnsafeRow changed() throws BadRecord {
    if (parts.after == null) throw new BadRecord(Reason.BAD_CHANGE, "op is '" + parts.op + "', and 'after' is null or missing");
    position = SourcePosition.of(parts.source, parts.op.equals("r"));
    if (key != null && parts.op.equals("u") && parts.before != null) before = left(parts.before);
    return whole(parts.after);
  }

  private UnsafeRow deleted() throws BadRecord {
    position = SourcePosition.of(parts.source, false);
    deleted = true;
    if (key != null) return parts.before == null ? null : left(parts.before);
    if (parts.before == null) throw new BadRecord(Reason.BAD_CHANGE, "op is 'd', and 'before' is null or missing");
    return whole(parts.before);
  }

  private UnsafeRow whole(Part part) throws BadRecord {
    Unavailable.check(part, schema);
    Object[] values = values(part, row);
    if (told) {
      values = Arrays.copyOf(values, schema.length());
      values[values.length - 1] = UTF8String.fromString(parts.op);
    }
    if (pack == null) pack = UnsafeProjection.create(schema.asNullable());
    return pack.apply(new GenericInternalRow(values));
  }

  /** Returns a row with nothing but its key. */
  private UnsafeRow left(Part part) throws BadRecord {
    Object[] found = values(part, left);
    Object[] values = new Object[schema.length()];
    for (int i = 0; i < ordinals.length; i++) values[ordinals[i]] = found[i];
    // A row that is packed stays as it is until the next one: both of a change are needed.
    if (packLeft == null) packLeft = UnsafeProjection.create(schema.asNullable());
    return packLeft.apply(new GenericInternalRow(values));
  }

  private static Object[] values(Part part, JsonReading.Struct reader) throws BadRecord {
    try (JsonParser p = JsonReading.JSON.createParser(part.bytes(), part.start(), part.length())) {
      if (p.nextToken() != JsonToken.START_OBJECT)
        throw new BadRecord(Reason.NOT_AN_OBJECT, "expected a row as an object, found " + JsonReading.found(p));
      return reader.fields(p, "", null);
    } catch (JsonProcessingException e) {
      throw JsonReading.badJson(e);
    } catch (IOException e) {
      throw new BadRecord(Reason.BAD_JSON, String.valueOf(e.getMessage()));
    }
  }

  @Override public boolean isTombstone() {
    return key != null && deleted;
  }

  @Override public boolean isEmpty() {
    return parts.empty;
  }

  @Override public byte[] position() {
    return position;
  }

  @Override public UnsafeRow before() {
    return before;
  }

  @Override public byte[] key(byte[] from, int start, int length) throws BadRecord {
    Part part = wrapped(from, start, length);
    return part == null ? messageKey.of(from, start, length) : messageKey.of(part.bytes(), part.start(), part.length());
  }

  /** Returns the key within the schema that Kafka Connect wraps around it; null where there is none. */
  private Part wrapped(byte[] from, int start, int length) throws BadRecord {
    types.use(null);
    if (length == 0 || from[start] != '{' || key.contains("payload")) return null;
    var names = new ArrayList<String>();
    Part payload = null;
    Part about = null;
    try (JsonParser p = JsonReading.JSON.createParser(from, start, length)) {
      p.nextToken();
      while (p.nextToken() == JsonToken.FIELD_NAME) {
        names.add(p.currentName());
        p.nextToken();
        int at = (int) p.currentTokenLocation().getByteOffset();
        p.skipChildren();
        p.finishToken();
        var part = new Part(from, start + at, (int) p.currentLocation().getByteOffset() - at);
        if (p.currentName().equals("payload")) payload = part;
        else if (p.currentToken() != JsonToken.VALUE_NULL) about = part;
      }
    } catch (IOException e) {
      // What is not JSON is the key as it is, or is refused as such.
      return null;
    }
    if (payload == null || names.size() != 2 || !names.contains("schema")) return null;
    if (about != null) types.use(about);
    return payload;
  }
}
