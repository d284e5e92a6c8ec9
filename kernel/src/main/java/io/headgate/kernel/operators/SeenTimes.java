package io.headgate.kernel.operators;

import io.headgate.kernel.json.KeyValues;
import io.headgate.kernel.state.Form;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** What dedupe keeps of a key as one row: the key's columns, then {@code seen}, the event times it was seen at. */
public final class SeenTimes implements Form {
  private final StructType key;
  private transient KeyValues keys;

  public SeenTimes(StructType key) {
    this.key = key;
  }

  @Override public StructType schema() {
    return key.add("seen", DataTypes.createArrayType(DataTypes.TimestampType, false), false);
  }

  @Override public InternalRow read(byte[] of, byte[] value) {
    if (keys == null) keys = new KeyValues(Arrays.stream(key.fields()).map(StructField::dataType).toList());
    var kept = new KeptTimes();
    kept.read(value);
    Object[] values = new Object[keys.columns() + 1];
    keys.read(of, values);
    values[keys.columns()] = new GenericArrayData(Arrays.stream(kept.all()).map(ms -> ms * 1000).toArray());
    return new GenericInternalRow(values);
  }
}
