package io.headgate.kernel.formats.changes;

import com.fasterxml.jackson.databind.JsonNode;
import io.headgate.kernel.formats.OutputColumns;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import io.headgate.kernel.json.JsonEncoder;
import io.headgate.kernel.json.RowEncoder;
import io.headgate.kernel.plan.PlanException;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Writes rows as JSON, and a deleted one as the line that ends its key in an embedded topic: {@code {"id":42,"$deleted":true}}.
 *
 * <p>A log that can hold a record without a value gets that in place of the line.
 */
public final class UpsertEncoder implements RowEncoder {
  private static final byte[] END = ",\"$deleted\":true}".getBytes(StandardCharsets.ISO_8859_1);

  private final Layout.Path key;
  /** Null where no row is deleted. */
  private final Layout.Path marker;
  private final JsonEncoder row;
  private final JsonEncoder keyAlone;
  private transient boolean gone;

  private UpsertEncoder(OutputColumns columns, int key, int marker) {
    this.key = columns.paths().get(key);
    this.marker = marker < 0 ? null : columns.paths().get(marker);
    var names = new ArrayList<>(columns.names());
    var paths = new ArrayList<>(columns.paths());
    if (marker >= 0) {
      names.remove(marker);
      paths.remove(marker);
    }
    row = new JsonEncoder(names, paths);
    keyAlone = new JsonEncoder(List.of(columns.names().get(key)), List.of(this.key));
  }

  /** @param format {@code key}, the column of the key, and {@code deleted}, the column that marks deleted rows, if any */
  public static UpsertEncoder of(JsonNode format, OutputColumns columns) {
    int marker = format.hasNonNull("deleted") ? columns.place(format.get("deleted").asText()) : -1;
    if (marker >= 0 && !(columns.paths().get(marker).type() instanceof BooleanType))
      throw new PlanException("BAD_OUTPUT", "cannot plan " + columns.output() + ": column '" + columns.names().get(marker) + "' is "
          + columns.paths().get(marker).type().sql() + ", and the mark of deleted rows must be a boolean");
    return new UpsertEncoder(columns, columns.place(format.get("key").asText()), marker);
  }

  /** Returns the columns that are written of an output's: all but the mark of deleted rows. */
  public static StructType written(JsonNode format, StructType columns) {
    String marker = format.path("deleted").asText();
    return new StructType(
        Arrays.stream(columns.fields()).filter(field -> !field.name().equals(marker)).toArray(StructField[]::new));
  }

  @Override public byte[] encode(SegmentedRow from) throws BadRecord {
    if (isNull(from, key))
      throw new BadRecord(Reason.NO_KEY, "no key: column '" + key.name() + "' is null");
    gone = marker != null && !isNull(from, marker)
        && JsonEncoder.descend(from.segment(marker.segment()), marker).getBoolean(marker.last());
    if (!gone) return row.encode(from);
    byte[] named = keyAlone.encode(from);
    byte[] line = new byte[named.length - 1 + END.length];
    System.arraycopy(named, 0, line, 0, named.length - 1);
    System.arraycopy(END, 0, line, named.length - 1, END.length);
    return line;
  }

  private static boolean isNull(SegmentedRow row, Layout.Path path) {
    InternalRow at = JsonEncoder.descend(row.segment(path.segment()), path);
    return at == null || at.isNullAt(path.last());
  }

  @Override public boolean isTombstone() {
    return gone;
  }
}
