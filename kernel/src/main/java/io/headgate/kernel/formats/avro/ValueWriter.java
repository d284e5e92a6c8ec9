package io.headgate.kernel.formats.avro;

import io.headgate.kernel.json.BadRecord;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;

/** Writes the value at an ordinal of a row or array. */
interface ValueWriter {
  void write(AvroOutput out, SpecializedGetters row, int i) throws BadRecord;
}
