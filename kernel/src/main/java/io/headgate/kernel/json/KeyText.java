package io.headgate.kernel.json;

import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.*;

/**
 * The one form of a key: its text (a string as it is, a number in digits), or a JSON array where it has several columns.
 *
 * <p>Its bucket is what rows are spread by; it is what state is kept under, and what a message key may say.
 */
public final class KeyText implements Serializable {
  /** What rows have in common that have no key: a key of no columns. */
  private static final byte[] NO_COLUMNS = {'[', ']'};

  private final Layout.Path[] paths;
  private final JsonWriting.Writer[] writers;

  public KeyText(List<Layout.Path> columns) {
    paths = columns.toArray(Layout.Path[]::new);
    writers = columns.stream().map(p -> JsonWriting.of(p.type())).toArray(JsonWriting.Writer[]::new);
  }

  /** Returns the key of rows that have no key. */
  public static byte[] ofNone() {
    return NO_COLUMNS.clone();
  }

  /** Returns the names of its columns. */
  public List<String> columns() {
    return Arrays.stream(paths).map(Layout.Path::name).toList();
  }

  /** Returns the key of a row, or null if a part of it is null. */
  public byte[] of(SegmentedRow row) {
    if (paths.length == 1) return single(row, paths[0]);
    if (paths.length == 0) return NO_COLUMNS;
    var out = new JsonText(32);
    for (int i = 0; i < paths.length; i++) {
      InternalRow at = JsonEncoder.descend(row.segment(paths[i].segment()), paths[i]);
      if (at == null || at.isNullAt(paths[i].last())) return null;
      out.add(i == 0 ? '[' : ',');
      writers[i].write(out, at, paths[i].last());
    }
    out.add(']');
    return out.toBytes();
  }

  private byte[] single(SegmentedRow row, Layout.Path path) {
    InternalRow at = JsonEncoder.descend(row.segment(path.segment()), path);
    int i = path.last();
    if (at == null || at.isNullAt(i)) return null;
    DataType type = path.type();
    if (type instanceof LongType) return digits(at.getLong(i));
    if (type instanceof IntegerType) return digits(at.getInt(i));
    if (type instanceof ShortType) return digits(at.getShort(i));
    if (type instanceof ByteType) return digits(at.getByte(i));
    if (type instanceof StringType) return at.getUTF8String(i).getBytes();
    var out = new JsonText(32);
    writers[0].write(out, at, i);
    return out.toBytes();
  }

  public static byte[] digits(long v) {
    return Long.toString(v).getBytes(StandardCharsets.ISO_8859_1);
  }
}
