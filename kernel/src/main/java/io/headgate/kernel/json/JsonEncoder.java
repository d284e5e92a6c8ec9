package io.headgate.kernel.json;

import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * Writes chosen columns of a row as one JSON object, straight from the packed segments.
 *
 * <p>One encoder serves one thread.
 */
public final class JsonEncoder implements RowEncoder {
  private final byte[][] names;
  private final Layout.Path[] paths;
  private final JsonWriting.Writer[] writers;
  private transient JsonText out;

  /** @param columns ways to the columns, written under their own names in this order */
  public JsonEncoder(List<String> names, List<Layout.Path> columns) {
    this.names = names.stream().map(JsonText::name).toArray(byte[][]::new);
    paths = columns.toArray(Layout.Path[]::new);
    writers = columns.stream().map(JsonEncoder::writer).toArray(JsonWriting.Writer[]::new);
  }

  /** Returns whether values of a type have a form in JSON. */
  public static boolean writes(DataType type) {
    try {
      JsonWriting.of(type);
      return true;
    } catch (IllegalArgumentException e) {
      return false;
    }
  }

  private static JsonWriting.Writer writer(Layout.Path path) {
    if (path.ordinals().length > 0) return JsonWriting.of(path.type());
    var struct = new JsonWriting.Struct((StructType) path.type());
    return (out, row, i) -> struct.fields(out, row);
  }

  @Override public byte[] encode(SegmentedRow row) {
    if (out == null) out = new JsonText(1024);
    out.clear();
    out.add('{');
    for (int c = 0; c < paths.length; c++) {
      if (c > 0) out.add(',');
      out.add(names[c]);
      value(row, c);
    }
    out.add('}');
    return out.toBytes();
  }

  private void value(SegmentedRow row, int c) {
    int[] way = paths[c].ordinals();
    InternalRow at = row.segment(paths[c].segment());
    if (way.length == 0) {
      writers[c].write(out, at, 0);
      return;
    }
    at = descend(at, paths[c]);
    int last = way[way.length - 1];
    if (at == null || at.isNullAt(last)) out.addNull();
    else writers[c].write(out, at, last);
  }

  /** Returns the struct that holds a path's last field, or null where one on the way is null. */
  public static InternalRow descend(InternalRow at, Layout.Path path) {
    int[] way = path.ordinals();
    for (int k = 0; k < way.length - 1; k++) {
      if (at.isNullAt(way[k])) return null;
      at = at.getStruct(way[k], path.widths()[k]);
    }
    return at;
  }
}
