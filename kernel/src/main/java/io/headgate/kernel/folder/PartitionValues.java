package io.headgate.kernel.folder;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import io.headgate.kernel.json.JsonDecoder;
import java.io.ByteArrayOutputStream;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** The values in the names of folders, {@code day=2026-11-15}, as a row of the declared types; as strict as JSON is. */
final class PartitionValues implements Serializable {
  private static final String NULL = "__HIVE_DEFAULT_PARTITION__";
  private static final ObjectMapper JSON = new ObjectMapper();

  private final StructType schema;
  private final JsonDecoder decoder;

  /** @param columns their names, which all are columns of the schema */
  PartitionValues(StructType declared, List<String> columns) {
    var schema = new StructType();
    for (String column : columns) schema = schema.add(declared.apply(column));
    this.schema = schema;
    decoder = new JsonDecoder(schema, false);
  }

  StructType schema() {
    return schema;
  }

  /** Returns the values that a file's path, relative to the folder, has; the row is overwritten by the next call. */
  UnsafeRow of(String path) throws BadRecord {
    ObjectNode values = JSON.createObjectNode();
    String[] parts = path.split("/");
    for (StructField column : schema.fields()) {
      String text = find(parts, column.name());
      if (text == null)
        throw new BadRecord(Reason.BAD_FILE, "no folder '" + column.name() + "=…' in the path of the file");
      put(values, column, text);
    }
    try {
      return decoder.decode(values.toString().getBytes(StandardCharsets.UTF_8));
    } catch (BadRecord e) {
      throw new BadRecord(Reason.BAD_FILE, "the name of a folder: " + e.getMessage());
    }
  }

  private static String find(String[] parts, String column) {
    for (int i = 0; i < parts.length - 1; i++)
      if (parts[i].startsWith(column + "=")) return unescape(parts[i].substring(column.length() + 1));
    return null;
  }

  private static void put(ObjectNode values, StructField column, String text) {
    if (text.equals(NULL)) values.putNull(column.name());
    else if (isPlain(column.dataType(), text)) values.putRawValue(column.name(), new com.fasterxml.jackson.databind.util.RawValue(text));
    else values.put(column.name(), text);
  }

  /** A number or a truth value as JSON writes it, and the decoder takes it; other text is of the wrong type for such a column. */
  private static boolean isPlain(DataType type, String text) {
    if (type instanceof BooleanType) return text.equals("true") || text.equals("false");
    return type instanceof NumericType && text.matches("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?");
  }

  /** Undoes the escapes of Hive: a per cent sign and two hexadecimal digits for a byte of UTF-8. */
  private static String unescape(String text) {
    if (text.indexOf('%') < 0) return text;
    byte[] from = text.getBytes(StandardCharsets.UTF_8);
    var out = new ByteArrayOutputStream(from.length);
    for (int i = 0; i < from.length; i++) {
      int high = from[i] == '%' && i + 2 < from.length ? Character.digit(from[i + 1], 16) : -1;
      int low = high >= 0 ? Character.digit(from[i + 2], 16) : -1;
      if (low >= 0) {
        out.write(high * 16 + low);
        i += 2;
      } else {
        out.write(from[i]);
      }
    }
    return out.toString(StandardCharsets.UTF_8);
  }
}
