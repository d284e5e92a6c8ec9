package io.headgate.kernel.json;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import io.headgate.kernel.json.BadRecord.Reason;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.io.IOException;
import java.io.Serializable;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Reads a message key as the key of a table's row: the very bytes that {@link KeyText} gives for such a row.
 *
 * <p>A key of one column is its text or a JSON value ({@code 42}, {@code "abc"}), or a JSON object that names the column
 * ({@code {"id": 42}}). A key of several columns is a JSON object that names them, or an array in the key's order. A text key
 * that is itself a JSON string or object is read as JSON; any other is the text as it is. One reader serves one thread.
 */
public final class MessageKey implements Serializable {
  private final StructType schema;
  private final KeyText key;
  private final String[] names;
  private final int[] ordinals;
  private final JsonReading.Reader[] readers;
  private transient UnsafeProjection pack;
  private transient SegmentedRow row;

  /** @param columns the key's, all of them in the first segment */
  public MessageKey(StructType schema, List<Layout.Path> columns) {
    this.schema = schema;
    key = new KeyText(columns);
    names = columns.stream().map(Layout.Path::name).toArray(String[]::new);
    ordinals = columns.stream().mapToInt(Layout.Path::last).toArray();
    readers = columns.stream().map(c -> JsonReading.of(c.type())).toArray(JsonReading.Reader[]::new);
  }

  /** Returns the key; a message key that is not of the key's type is a record without one. */
  public byte[] of(byte[] from, int start, int length) throws BadRecord {
    Object[] values = new Object[schema.length()];
    try {
      DataType type = schema.fields()[ordinals[0]].dataType();
      if (names.length == 1 && type instanceof StringType && !isJson(from, start, length))
        values[ordinals[0]] = text(from, start, length);
      else if (names.length == 1 && isBare(type, from, start, length))
        read(quoted(from, start, length), 0, length + 2, values);
      else
        read(from, start, length, values);
    } catch (BadRecord e) {
      throw new BadRecord(Reason.NO_KEY,
          "no key: a record without a value, and its message key is not the table's: " + e.getMessage());
    }
    return pack(values);
  }

  /** Tells whether a text is a JSON string or object as a whole. */
  private static boolean isJson(byte[] from, int start, int length) {
    if (length == 0 || (from[start] != '"' && from[start] != '{')) return false;
    try (JsonParser p = JsonReading.JSON.createParser(from, start, length)) {
      p.nextToken();
      p.skipChildren();
      p.finishToken();
      return p.nextToken() == null;
    } catch (IOException e) {
      return false;
    }
  }

  private static UTF8String text(byte[] from, int start, int length) throws BadRecord {
    UTF8String text = UTF8String.fromBytes(Arrays.copyOfRange(from, start, start + length));
    if (!text.isValid()) throw new BadRecord(Reason.NOT_UTF8, "it is not UTF-8");
    return text;
  }

  /** Tells whether a value that JSON writes as a string stands there without its quotes. */
  private static boolean isBare(DataType type, byte[] from, int start, int length) {
    boolean written = type instanceof DateType || type instanceof TimestampType;
    return written && length > 0 && from[start] != '"' && from[start] != '{';
  }

  private static byte[] quoted(byte[] from, int start, int length) {
    byte[] out = new byte[length + 2];
    out[0] = '"';
    System.arraycopy(from, start, out, 1, length);
    out[length + 1] = '"';
    return out;
  }

  private void read(byte[] from, int start, int length, Object[] values) throws BadRecord {
    Utf8.checkJson(from, start, length);
    try (JsonParser p = JsonReading.JSON.createParser(from, start, length)) {
      JsonToken first = p.nextToken();
      if (first == null) throw new BadRecord(Reason.BAD_JSON, "it is empty");
      if (first == JsonToken.START_OBJECT) object(p, values);
      else if (names.length > 1) array(p, values);
      else value(p, 0, values);
      if (p.nextToken() != null) throw new BadRecord(Reason.BAD_JSON, "it is more than one JSON value");
    } catch (JsonProcessingException e) {
      throw JsonReading.badJson(e);
    } catch (IOException e) {
      throw new BadRecord(Reason.BAD_JSON, String.valueOf(e.getMessage()));
    }
    for (int i = 0; i < names.length; i++)
      if (values[ordinals[i]] == null) throw new BadRecord(Reason.MISSING_FIELD, "'" + names[i] + "' is null or missing");
  }

  private void object(JsonParser p, Object[] values) throws IOException, BadRecord {
    while (p.nextToken() != JsonToken.END_OBJECT) {
      int i = Arrays.asList(names).indexOf(p.currentName());
      p.nextToken();
      if (i < 0) p.skipChildren();
      else value(p, i, values);
    }
  }

  private void array(JsonParser p, Object[] values) throws IOException, BadRecord {
    if (p.currentToken() != JsonToken.START_ARRAY)
      throw new BadRecord(Reason.WRONG_TYPE, "expected an object or an array, found " + JsonReading.found(p));
    for (int i = 0; p.nextToken() != JsonToken.END_ARRAY; i++) {
      if (i == names.length) throw new BadRecord(Reason.WRONG_TYPE, "expected " + names.length + " values, found more");
      value(p, i, values);
    }
  }

  private void value(JsonParser p, int i, Object[] values) throws IOException, BadRecord {
    values[ordinals[i]] = p.currentToken() == JsonToken.VALUE_NULL ? null : readers[i].read(p, names[i]);
  }

  private byte[] pack(Object[] values) {
    if (pack == null) {
      pack = UnsafeProjection.create(schema.asNullable());
      row = new SegmentedRow(Layout.of(schema));
    }
    row.set(pack.apply(new GenericInternalRow(values)));
    return key.of(row);
  }
}
