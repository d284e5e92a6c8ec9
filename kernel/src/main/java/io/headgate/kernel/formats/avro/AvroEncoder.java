package io.headgate.kernel.formats.avro;

import io.headgate.kernel.formats.OutputColumns;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.JsonEncoder;
import io.headgate.kernel.json.RowEncoder;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.util.Arrays;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.StructType;

/**
 * Writes chosen columns of a row in Avro's binary encoding, straight from the packed segments.
 *
 * <p>One encoder serves one thread. With a registry, its schema and id are set at the start, on the driver.
 */
public final class AvroEncoder implements RowEncoder {
  private static final GenericInternalRow NOTHING = new GenericInternalRow(1);

  private final StructType columns;
  private final Layout.Path[] paths;
  /** Null where records name no schema. */
  private final Subject subject;
  private String schema;
  private int id;
  private transient AvroOutput out;
  private transient int[] fields;
  private transient ValueWriter[] writers;
  private transient GenericInternalRow segment;

  /**
   * @param schema the schema of the records; null for the one that a registry has
   * @param subject where the schema is registered; null for records that name no schema
   */
  public AvroEncoder(OutputColumns columns, Schema schema, Subject subject) {
    this.columns = columns.type();
    this.paths = columns.paths().toArray(Layout.Path[]::new);
    this.subject = subject;
    this.schema = schema == null ? null : schema.toString();
    if (schema != null) compile();
  }

  /** Returns the schema of the records, as JSON. */
  public String schema() {
    return schema;
  }

  @Override public void atStart() {
    if (subject == null) return;
    Subject.Writing writing = subject.writing(schema == null ? null : AvroSchemas.parse(schema));
    schema = writing.schema().toString();
    id = writing.id();
    try {
      compile();
    } catch (AvroSchemas.Unwritable e) {
      throw subject.unwritable(e);
    }
  }

  private void compile() {
    Schema parsed = AvroSchemas.parse(schema);
    List<Schema.Field> all = parsed.getFields();
    fields = RecordWriter.ordinals(parsed, Arrays.asList(columns.fieldNames()), "");
    writers = new ValueWriter[fields.length];
    for (int k = 0; k < fields.length; k++)
      writers[k] = fields[k] < 0
          ? ValueWriters.constant(Defaults.encoded(all.get(k)))
          : ValueWriters.of(all.get(k).schema(), columns.fields()[fields[k]].dataType(), all.get(k).name());
    out = new AvroOutput();
    segment = new GenericInternalRow(1);
  }

  @Override public byte[] encode(SegmentedRow row) throws BadRecord {
    if (writers == null) compile();
    out.clear();
    if (subject != null) {
      out.add(0);
      out.addBigEndian(id);
    }
    for (int k = 0; k < writers.length; k++) {
      if (fields[k] < 0) writers[k].write(out, NOTHING, 0);
      else value(row, paths[fields[k]], writers[k]);
    }
    return out.toBytes();
  }

  private void value(SegmentedRow row, Layout.Path path, ValueWriter writer) throws BadRecord {
    InternalRow at = row.segment(path.segment());
    if (path.ordinals().length == 0) {
      segment.update(0, at);
      writer.write(out, segment, 0);
      return;
    }
    at = JsonEncoder.descend(at, path);
    if (at == null) writer.write(out, NOTHING, 0);
    else writer.write(out, at, path.last());
  }
}
