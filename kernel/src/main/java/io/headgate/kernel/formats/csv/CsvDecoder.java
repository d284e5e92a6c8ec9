package io.headgate.kernel.formats.csv;

import io.headgate.kernel.formats.RecordDecoder;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import io.headgate.kernel.json.JsonDecoder;
import io.headgate.kernel.json.Utf8;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Turns one record of CSV into a packed row, or says why it cannot; it is as strict as JSON.
 *
 * <p>Fields that the schema does not name are passed over. A column that records do not have takes its default.
 */
public final class CsvDecoder implements RecordDecoder {
  private final CsvShape shape;
  private final StructType schema;
  private final List<String> names;
  /** The place of each field's column in the row, or -1. */
  private final int[] ordinals;
  private final CsvValue[] values;
  /** The columns that records do not have. */
  private final StructType absent;
  private transient CsvFields fields;
  private transient UnsafeRowWriter row;
  /** The values of absent columns. */
  private transient UnsafeRow defaults;

  public CsvDecoder(CsvShape shape, StructType schema) {
    this.shape = shape;
    this.schema = schema;
    names = shape.columnsOr(Arrays.asList(schema.fieldNames()));
    ordinals = new int[names.size()];
    values = new CsvValue[schema.length()];
    for (int i = 0; i < ordinals.length; i++)
      ordinals[i] = Arrays.asList(schema.fieldNames()).indexOf(names.get(i));
    var without = new ArrayList<StructField>();
    for (int i = 0; i < values.length; i++) {
      StructField field = schema.fields()[i];
      values[i] = CsvValue.of(field.dataType());
      if (!names.contains(field.name())) without.add(field);
    }
    absent = new StructType(without.toArray(StructField[]::new));
  }

  @Override public UnsafeRow decode(byte[] from, int start, int length) throws BadRecord {
    if (fields == null) prepare();
    Utf8.check(from, start, length);
    fields.split(from, start, length);
    row.reset();
    row.zeroOutNullBytes();
    for (int i = 0; i < ordinals.length; i++) if (ordinals[i] >= 0) put(i, ordinals[i]);
    for (int i = 0; i < absent.length(); i++) {
      int to = schema.fieldIndex(absent.fields()[i].name());
      if (defaults.isNullAt(i)) values[to].writeNull(row, to);
      else values[to].copy(defaults, i, row, to);
    }
    return row.getRow();
  }

  private void put(int i, int ordinal) throws BadRecord {
    if (!fields.isQuoted(i) && fields.equals(i, shape.nulls())) {
      if (!schema.fields()[ordinal].nullable())
        throw new BadRecord(Reason.NULL_FIELD, "field '" + names.get(i) + "' must not be null");
      values[ordinal].writeNull(row, ordinal);
      return;
    }
    fields.open(i);
    values[ordinal].write(fields, names.get(i), row, ordinal);
  }

  private void prepare() throws BadRecord {
    row = new UnsafeRowWriter(schema.length());
    defaults = absent.isEmpty() ? null : new JsonDecoder(absent, false).decode(new byte[] {'{', '}'}).copy();
    fields = new CsvFields(shape, names);
  }
}
