package io.headgate.kernel.json;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import io.headgate.kernel.formats.RecordDecoder;
import io.headgate.kernel.json.BadRecord.Reason;
import java.io.IOException;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/**
 * Turns one JSON record into a packed row, or says why it cannot.
 *
 * <p>One decoder serves one thread; the row it returns is overwritten by the next call.
 */
public final class JsonDecoder implements RecordDecoder {
  /** Marks a line of an embedded changelog as the end of its key. */
  static final String DELETED = "$deleted";

  /** So many records in a row that are not plain, and the rest of the task's will hardly be. */
  private static final int ENOUGH_MISSES = 32;

  private final StructType schema;
  private final JsonReading.Struct reader;
  private final boolean table;
  private transient boolean ready;
  private transient Deletion deletion;
  /** Null where records are not what it takes. */
  private transient PlainDecoder plain;
  private transient int misses;
  private transient UnsafeProjection pack;

  /** @param table whether a record may be a tombstone, {@code {"id": 42, "$deleted": true}} */
  public JsonDecoder(StructType schema, boolean table) {
    this.schema = schema;
    this.reader = new JsonReading.Struct(schema);
    this.table = table;
  }

  @Override public boolean isTombstone() {
    return table && deletion.deleted;
  }

  public UnsafeRow decode(byte[] record) throws BadRecord {
    return decode(record, 0, record.length);
  }

  @Override public UnsafeRow decode(byte[] from, int start, int length) throws BadRecord {
    if (!ready) prepare();
    deletion.deleted = false;
    if (plain != null) {
      UnsafeRow row = plain.decode(from, start, length);
      if (row != null) {
        misses = 0;
        return row;
      }
      if (++misses == ENOUGH_MISSES) plain = null;
    }
    return decodeAny(from, start, length);
  }

  private void prepare() {
    deletion = new Deletion();
    plain = PlainDecoder.find(schema);
    ready = true;
  }

  private UnsafeRow decodeAny(byte[] from, int start, int length) throws BadRecord {
    // A tombstone has nulls where the schema has none, so the packing must not rely on it.
    if (pack == null) pack = UnsafeProjection.create(schema.asNullable());
    Utf8.checkJson(from, start, length);
    try (JsonParser p = JsonReading.JSON.createParser(from, start, length)) {
      if (p.nextToken() != JsonToken.START_OBJECT)
        throw new BadRecord(Reason.NOT_AN_OBJECT, "expected an object, found " + JsonReading.found(p));
      Object[] values = reader.fields(p, "", table ? deletion : null);
      if (p.nextToken() != null)
        throw new BadRecord(Reason.BAD_JSON, "more than one value: found " + JsonReading.found(p) + " after the object");
      return pack.apply(new GenericInternalRow(values));
    } catch (JsonProcessingException e) {
      throw JsonReading.badJson(e);
    } catch (IOException e) {
      throw new BadRecord(Reason.BAD_JSON, String.valueOf(e.getMessage()));
    }
  }

  private static final class Deletion implements JsonReading.Marks {
    boolean deleted;

    @Override public boolean take(JsonParser p, String name) throws IOException, BadRecord {
      if (!name.equals(DELETED)) return false;
      if (!p.currentToken().isBoolean()) throw JsonReading.wrong(p, DELETED, "true or false");
      deleted = p.getBooleanValue();
      return true;
    }

    @Override public boolean lenient() {
      return deleted;
    }
  }
}
