package io.headgate.kernel.formats.avro;

import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.JsonDecoder;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** What columns have that are not written. */
final class Defaults {
  private Defaults() {}

  /** Returns a row of the columns' own defaults. */
  static InternalRow of(StructType columns) {
    StructType optional = new StructType();
    for (StructField f : columns.fields()) optional = optional.add(new StructField(f.name(), f.dataType(), true, f.metadata()));
    try {
      return new JsonDecoder(optional, false).decode(new byte[] {'{', '}'}).copy();
    } catch (BadRecord e) {
      throw new IllegalStateException(e);
    }
  }

  /** Returns the defaults that a reader's schema has for columns, by their names. */
  static Map<String, Object> of(Schema reader, StructType columns) {
    var out = new HashMap<String, Object>();
    for (StructField column : columns.fields()) {
      Schema.Field field = reader.getField(column.name());
      if (field == null || !field.hasDefaultValue()) continue;
      var problems = new ArrayList<Problem>();
      ValueReader value = new ValueReaders(problems).of(field.schema(), column.dataType(), true, column.name());
      var in = new AvroInput();
      byte[] bytes = encoded(field);
      in.set(bytes, 0, bytes.length);
      try {
        out.put(column.name(), value.read(in));
      } catch (BadRecord e) {
        // The schema itself does not fit the columns, which is found out in another place.
      }
    }
    return out;
  }

  /** Returns the default of a field as it is written. */
  static byte[] encoded(Schema.Field field) {
    var out = new ByteArrayOutputStream();
    BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(out, null);
    try {
      new GenericDatumWriter<>(field.schema()).write(GenericData.get().getDefaultValue(field), encoder);
      encoder.flush();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return out.toByteArray();
  }
}
