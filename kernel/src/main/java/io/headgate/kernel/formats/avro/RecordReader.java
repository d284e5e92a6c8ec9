package io.headgate.kernel.formats.avro;

import io.headgate.kernel.json.BadRecord;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Reads the fields that a writer has written as columns, by their names. Other fields are skipped; a column that
 * is not written has its default, or null.
 */
final class RecordReader implements ValueReader {
  private static final AvroInput.Element[] NONE = {};

  private final int width;
  /** The columns in the order in which they are written. */
  private final int[] ordinals;
  private final ValueReader[] readers;
  /** What is passed over before each of them, and behind the last. */
  private final AvroInput.Element[][] skips;
  /** The columns that are not written. */
  private final int[] absent;
  private final ValueReader[] constants;

  /**
   * @param reader what the reader declared, whose aliases are older names of fields, and whose defaults count; may be null
   * @param prefix what precedes the names of fields in messages
   */
  RecordReader(Schema written, StructType columns, Schema reader, ValueReaders values, String prefix) {
    width = columns.length();
    int[] places = places(written, columns, reader);
    var skipping = new Skipping();
    int count = (int) Arrays.stream(places).filter(place -> place >= 0).distinct().count();
    ordinals = new int[count];
    readers = new ValueReader[count];
    skips = new AvroInput.Element[count + 1][];
    var present = new boolean[width];
    int k = 0;
    var pending = new java.util.ArrayList<AvroInput.Element>();
    for (Schema.Field field : written.getFields()) {
      int column = places[field.pos()];
      if (column < 0) {
        pending.add(skipping.of(field.schema()));
        continue;
      }
      StructField wanted = columns.fields()[column];
      present[column] = true;
      skips[k] = pending.toArray(NONE);
      pending.clear();
      ordinals[k] = column;
      readers[k++] = values.of(field.schema(), wanted.dataType(), wanted.nullable(), prefix + wanted.name());
    }
    skips[k] = pending.toArray(NONE);
    absent = java.util.stream.IntStream.range(0, width).filter(i -> !present[i]).toArray();
    constants = constants(columns, reader, values, prefix);
  }

  /** Returns the column of each written field; -1 for one that nobody wants. */
  private static int[] places(Schema written, StructType columns, Schema reader) {
    int[] places = new int[written.getFields().size()];
    Arrays.fill(places, -1);
    for (int i = 0; i < columns.length(); i++) {
      String name = columns.fields()[i].name();
      Schema.Field found = written.getField(name);
      Schema.Field declared = reader == null ? null : reader.getField(name);
      if (found == null && declared != null)
        for (String alias : declared.aliases()) if (found == null) found = written.getField(alias);
      if (found != null && places[found.pos()] < 0) places[found.pos()] = i;
    }
    return places;
  }

  private ValueReader[] constants(StructType columns, Schema reader, ValueReaders values, String prefix) {
    if (absent.length == 0) return new ValueReader[0];
    InternalRow defaults = Defaults.of(columns);
    Map<String, Object> declared = reader == null ? new HashMap<>() : Defaults.of(reader, columns);
    return Arrays.stream(absent).mapToObj(i -> {
      StructField column = columns.fields()[i];
      Object value = defaults.isNullAt(i) ? declared.get(column.name()) : defaults.get(i, column.dataType());
      return value == null && !column.nullable()
          ? values.missing(prefix + column.name()) : new ValueReaders.Constant(value, column.dataType());
    }).toArray(ValueReader[]::new);
  }

  @Override public Object read(AvroInput in) throws BadRecord {
    return fields(in);
  }

  InternalRow fields(AvroInput in) throws BadRecord {
    in.enter();
    Object[] values = new Object[width];
    for (int k = 0; k < ordinals.length; k++) {
      for (AvroInput.Element skip : skips[k]) skip.take(in);
      values[ordinals[k]] = readers[k].read(in);
    }
    for (AvroInput.Element skip : skips[ordinals.length]) skip.take(in);
    for (int k = 0; k < absent.length; k++) values[absent[k]] = constants[k].read(in);
    in.leave();
    return new GenericInternalRow(values);
  }

  /** Does the same right into a row, whose columns are all flat. */
  void fields(AvroInput in, UnsafeRowWriter row) throws BadRecord {
    for (int k = 0; k < ordinals.length; k++) {
      for (AvroInput.Element skip : skips[k]) skip.take(in);
      readers[k].read(in, row, ordinals[k]);
    }
    for (AvroInput.Element skip : skips[ordinals.length]) skip.take(in);
    for (int k = 0; k < absent.length; k++) constants[k].read(in, row, absent[k]);
  }
}
