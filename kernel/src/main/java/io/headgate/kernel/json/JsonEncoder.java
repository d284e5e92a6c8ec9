package io.headgate.kernel.json;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.io.SerializedString;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/**
 * Writes chosen columns of a row as one JSON object, straight from the packed segments.
 *
 * <p>One encoder serves one thread.
 */
public final class JsonEncoder implements RowEncoder {
  private final SerializedString[] names;
  private final Layout.Path[] paths;
  private final JsonWriting.Writer[] writers;
  private transient ByteArrayOutputStream buffer;

  /** @param columns ways to the columns, written under their own names in this order */
  public JsonEncoder(List<String> names, List<Layout.Path> columns) {
    this.names = names.stream().map(SerializedString::new).toArray(SerializedString[]::new);
    paths = columns.toArray(Layout.Path[]::new);
    writers = columns.stream().map(JsonEncoder::writer).toArray(JsonWriting.Writer[]::new);
  }

  private static JsonWriting.Writer writer(Layout.Path path) {
    if (path.ordinals().length > 0) return JsonWriting.of(path.type());
    var struct = new JsonWriting.Struct((StructType) path.type());
    return (g, row, i) -> struct.fields(g, row);
  }

  @Override public byte[] encode(SegmentedRow row) {
    if (buffer == null) buffer = new ByteArrayOutputStream(1024);
    buffer.reset();
    try (JsonGenerator g = JsonWriting.JSON.createGenerator(buffer)) {
      g.writeStartObject();
      for (int c = 0; c < paths.length; c++) {
        g.writeFieldName(names[c]);
        value(g, row, c);
      }
      g.writeEndObject();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return buffer.toByteArray();
  }

  private void value(JsonGenerator g, SegmentedRow row, int c) throws IOException {
    int[] way = paths[c].ordinals();
    InternalRow at = row.segment(paths[c].segment());
    if (way.length == 0) {
      writers[c].write(g, at, 0);
      return;
    }
    at = descend(at, paths[c]);
    int last = way[way.length - 1];
    if (at == null || at.isNullAt(last)) g.writeNull();
    else writers[c].write(g, at, last);
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
