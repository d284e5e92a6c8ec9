package io.headgate.kernel.formats.avro;

import io.headgate.kernel.formats.avro.AvroSchemas.Unwritable;
import io.headgate.kernel.json.BadRecord;
import java.util.Arrays;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.types.StructType;

/** Writes a struct as a record: the fields in the schema's order, by their names. */
final class RecordWriter {
  private final int[] ordinals;
  private final ValueWriter[] writers;

  RecordWriter(Schema schema, StructType columns, String prefix) {
    List<Schema.Field> fields = schema.getFields();
    ordinals = ordinals(schema, Arrays.asList(columns.fieldNames()), prefix);
    writers = new ValueWriter[fields.size()];
    for (int k = 0; k < writers.length; k++)
      writers[k] = writer(fields.get(k), ordinals[k] < 0 ? null : columns, ordinals[k], prefix);
  }

  private static ValueWriter writer(Schema.Field field, StructType columns, int ordinal, String prefix) {
    return columns == null
        ? ValueWriters.constant(Defaults.encoded(field))
        : ValueWriters.of(field.schema(), columns.fields()[ordinal].dataType(), prefix + field.name());
  }

  /** Returns the column of each field; -1 for one that is written as its default. */
  static int[] ordinals(Schema schema, List<String> columns, String prefix) {
    for (String column : columns)
      if (schema.getField(column) == null)
        throw new Unwritable("column '" + prefix + column + "' is not in the schema " + schema.getFullName(),
            "select the columns of the schema, or add a field to it");
    return schema.getFields().stream().mapToInt(field -> {
      int found = columns.indexOf(field.name());
      if (found < 0 && !field.hasDefaultValue())
        throw new Unwritable("field '" + prefix + field.name() + "' of the schema " + schema.getFullName() + " has no column",
            "add the column with with_columns, or give the field a default in the schema");
      return found;
    }).toArray();
  }

  void write(AvroOutput out, SpecializedGetters row) throws BadRecord {
    for (int k = 0; k < writers.length; k++) writers[k].write(out, row, ordinals[k]);
  }
}
