package io.headgate.kernel.formats.csv;

import io.headgate.kernel.formats.OutputColumns;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import io.headgate.kernel.json.JsonEncoder;
import io.headgate.kernel.json.JsonText;
import io.headgate.kernel.json.RowEncoder;
import io.headgate.kernel.json.ValueText;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.*;

/**
 * Writes chosen columns of a row as one record of CSV.
 *
 * <p>A text is in quotes where a reader would take it for something else without them: if it contains a delimiter, a quote or
 * an end of a line, begins or ends with a blank, or is the text that means null. One encoder serves one thread.
 */
public final class CsvEncoder implements RowEncoder {
  private interface Writer extends Serializable {
    /** Writes a value that never needs quotes. */
    void write(JsonText out, InternalRow row, int i);
  }

  private interface Text extends Serializable {
    byte[] of(InternalRow row, int i);
  }

  private final CsvShape shape;
  private final List<String> names;
  private final Layout.Path[] paths;
  private final Writer[] writers;
  /** In place of a writer, for values that may need quotes. */
  private final Text[] texts;
  private final boolean lines;
  private transient JsonText out;

  /** @param lines whether a record must not contain the end of a line */
  public CsvEncoder(CsvShape shape, OutputColumns columns, boolean lines) {
    this.shape = shape;
    this.lines = lines;
    OutputColumns ordered = columns.ordered(shape.columnsOr(columns.names()));
    names = List.copyOf(ordered.names());
    paths = ordered.paths().toArray(Layout.Path[]::new);
    writers = ordered.paths().stream().map(path -> writer(path.type())).toArray(Writer[]::new);
    texts = ordered.paths().stream().map(path -> text(path.type())).toArray(Text[]::new);
  }

  /** Returns the record with the names of the columns. */
  public String header() {
    out = new JsonText(512);
    try {
      for (int c = 0; c < names.size(); c++) {
        if (c > 0) out.add((char) shape.delimiter());
        text(names.get(c).getBytes(StandardCharsets.UTF_8), names.get(c));
      }
    } catch (BadRecord e) {
      throw new IllegalStateException(e);
    }
    return new String(out.toBytes(), StandardCharsets.UTF_8);
  }

  /** Returns whether values of a type have a form in CSV. */
  public static boolean writes(DataType type) {
    return writer(type) != null || text(type) != null;
  }

  private static Text text(DataType type) {
    if (type instanceof StringType) return (row, i) -> row.getUTF8String(i).getBytes();
    if (type instanceof BinaryType) return (row, i) -> ValueText.ofBinary(row.getBinary(i)).getBytes(StandardCharsets.ISO_8859_1);
    return null;
  }

  private static Writer writer(DataType type) {
    if (type instanceof LongType) return (out, row, i) -> out.number(row.getLong(i));
    if (type instanceof IntegerType) return (out, row, i) -> out.number(row.getInt(i));
    if (type instanceof ShortType) return (out, row, i) -> out.number(row.getShort(i));
    if (type instanceof ByteType) return (out, row, i) -> out.number(row.getByte(i));
    if (type instanceof DoubleType) return (out, row, i) -> number(out, row.getDouble(i));
    if (type instanceof FloatType) return (out, row, i) -> number(out, row.getFloat(i));
    if (type instanceof BooleanType) return (out, row, i) -> out.bool(row.getBoolean(i));
    if (type instanceof DateType) return (out, row, i) -> out.ascii(ValueText.ofDate(row.getInt(i)));
    if (type instanceof TimestampType) return (out, row, i) -> out.ascii(ValueText.ofTimestamp(row.getLong(i)));
    if (type instanceof DecimalType d)
      return (out, row, i) -> out.ascii(ValueText.ofDecimal(row.getDecimal(i, d.precision(), d.scale())));
    return null;
  }

  private static void number(JsonText out, double value) {
    if (Double.isFinite(value)) out.number(value);
    else out.ascii(Double.toString(value));
  }

  private static void number(JsonText out, float value) {
    if (Float.isFinite(value)) out.number(value);
    else out.ascii(Float.toString(value));
  }

  @Override public byte[] encode(SegmentedRow row) throws BadRecord {
    if (out == null) out = new JsonText(512);
    out.clear();
    for (int c = 0; c < paths.length; c++) {
      if (c > 0) out.add((char) shape.delimiter());
      InternalRow at = JsonEncoder.descend(row.segment(paths[c].segment()), paths[c]);
      int i = paths[c].last();
      if (at == null || at.isNullAt(i)) out.add(shape.nulls());
      else if (texts[c] == null) writers[c].write(out, at, i);
      else text(texts[c].of(at, i), paths[c].name());
    }
    return out.toBytes();
  }

  private void text(byte[] text, String name) throws BadRecord {
    if (!needsQuotes(text, name)) {
      out.add(text);
      return;
    }
    char quote = (char) shape.quote();
    out.add(quote);
    for (byte b : text) {
      if (b == shape.quote()) out.add(quote);
      out.add((char) (b & 0xff));
    }
    out.add(quote);
  }

  private boolean needsQuotes(byte[] text, String name) throws BadRecord {
    // A record without a character would be a blank line, which is no record.
    boolean needed = Arrays.equals(text, shape.nulls()) || text.length == 0 && paths.length == 1;
    if (text.length > 0) needed |= isBlank(text[0]) || isBlank(text[text.length - 1]);
    for (byte b : text) {
      if (b == '\n' && lines)
        throw new BadRecord(Reason.BAD_CSV,
            "field '" + name + "' contains an end of a line, and this topic holds each record on one line");
      needed |= b == shape.delimiter() || b == shape.quote() || b == '\n' || b == '\r';
    }
    return needed;
  }

  private static boolean isBlank(byte b) {
    return b == ' ' || b == '\t';
  }
}
