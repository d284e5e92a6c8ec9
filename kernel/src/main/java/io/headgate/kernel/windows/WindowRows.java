package io.headgate.kernel.windows;

import io.headgate.kernel.json.KeyValues;
import io.headgate.kernel.state.Form;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The windows of a key as one row: the key's columns, then {@code windows}, each with its figures as they are so far.
 *
 * <p>{@code partial} is true until the window's final row was written, {@code processed_at} when it last told something, or
 * began.
 */
public final class WindowRows implements Form {
  private final WindowSpec spec;
  private transient OpenWindows open;
  private transient KeyValues keys;

  public WindowRows(WindowSpec spec) {
    this.spec = spec;
  }

  public StructType key() {
    return new StructType(spec.key().toArray(StructField[]::new));
  }

  @Override public StructType schema() {
    StructType window = new StructType()
        .add("window_start", DataTypes.TimestampType, false).add("window_end", DataTypes.TimestampType, false);
    for (Aggregate each : spec.aggregates()) window = window.add(each.field());
    window = window.add("partial", DataTypes.BooleanType, false).add("processed_at", DataTypes.TimestampType, false);
    return key().add("windows", DataTypes.createArrayType(window, false), false);
  }

  @Override public InternalRow read(byte[] key, byte[] value) {
    if (open == null) {
      open = new OpenWindows(spec.name(), spec.aggregates());
      keys = new KeyValues(spec.key().stream().map(StructField::dataType).toList());
    }
    open.read(value);
    Object[] windows = new Object[open.size()];
    for (int i = 0; i < windows.length; i++) windows[i] = row(open.get(i), spec.aggregates());
    Object[] values = new Object[keys.columns() + 1];
    keys.read(key, values);
    values[keys.columns()] = new GenericArrayData(windows);
    return new GenericInternalRow(values);
  }

  private static InternalRow row(OpenWindow window, List<Aggregate> aggregates) {
    Object[] values = new Object[aggregates.size() + 4];
    values[0] = Math.multiplyExact(window.from, 1000L);
    values[1] = Math.multiplyExact(window.end, 1000L);
    for (int i = 0; i < aggregates.size(); i++) values[2 + i] = window.result(i);
    values[2 + aggregates.size()] = !window.finished;
    values[3 + aggregates.size()] = Math.multiplyExact(window.told, 1000L);
    return new GenericInternalRow(values);
  }
}
