package io.headgate.kernel.joins;

import io.headgate.kernel.json.KeyValues;
import io.headgate.kernel.state.Form;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;

/**
 * What a join holds of a key as one row: the key's columns, then {@code left} and {@code right}, the waiting rows of each side by
 * their time, each with {@code event_time}, {@code matched} and {@code row}.
 *
 * <p>Of a key with many rows, the first of each side that are found are shown. A name that a column of the key has gets an
 * underscore.
 */
public final class JoinState implements Form {
  /** The most rows of a side that are shown. */
  public static final int MOST = 1000;

  private final JoinSpec spec;
  private transient KeyRows rows;
  private transient KeyValues keys;

  public JoinState(JoinSpec spec) {
    this.spec = spec;
  }

  public StructType key() {
    return new StructType(spec.key().toArray(StructField[]::new));
  }

  @Override public StructType schema() {
    var taken = new HashSet<String>();
    for (StructField field : spec.key()) taken.add(field.name().toLowerCase(Locale.ROOT));
    return key().add(free("left", taken), waiting(JoinRow.LEFT), false).add(free("right", taken), waiting(JoinRow.RIGHT), false);
  }

  private static String free(String name, HashSet<String> taken) {
    return taken.add(name) ? name : free(name + "_", taken);
  }

  private org.apache.spark.sql.types.DataType waiting(int side) {
    return DataTypes.createArrayType(new StructType()
        .add("event_time", DataTypes.TimestampType, false).add("matched", DataTypes.BooleanType, false)
        .add("row", spec.columns(side), false), false);
  }

  @Override public byte[] entry(byte[] key) {
    return KeyRows.record(key);
  }

  @Override public byte[] further(byte[] key) {
    byte[] page = KeyRows.page(key, 0, 0);
    return Arrays.copyOf(page, page.length - 9);
  }

  @Override public int furtherLength(byte[] key) {
    return KeyRows.page(key, 0, 0).length;
  }

  @Override public InternalRow read(byte[] key, byte[] value) {
    return read(key, value, wanted -> new byte[wanted.size()][], Long.MIN_VALUE);
  }

  @Override public InternalRow read(byte[] key, byte[] value, Entries entries, long now) {
    if (rows == null) {
      rows = new KeyRows(spec, null);
      keys = new KeyValues(spec.key().stream().map(StructField::dataType).toList());
    }
    rows.read(value);
    for (JoinPage page : rows.pages()) {
      if (rows.rows(page.side).size() >= MOST) continue;
      byte[] held = entries.find(List.of(KeyRows.page(key, page.side, page.number)))[0];
      if (held != null) rows.load(page, held);
    }
    Object[] values = new Object[keys.columns() + 2];
    keys.read(key, values);
    values[keys.columns()] = shown(JoinRow.LEFT);
    values[keys.columns() + 1] = shown(JoinRow.RIGHT);
    return new GenericInternalRow(values);
  }

  private GenericArrayData shown(int side) {
    var all = new ArrayList<>(rows.rows(side));
    all.sort(JoinRow.BY_TIME);
    Object[] out = new Object[Math.min(MOST, all.size())];
    for (int i = 0; i < out.length; i++) {
      JoinRow row = all.get(i);
      var columns = new UnsafeRow(spec.columns(side).length());
      columns.pointTo(row.bytes, Platform.BYTE_ARRAY_OFFSET + (long) row.start, row.length);
      out[i] = new GenericInternalRow(new Object[] {Math.multiplyExact(row.time, 1000L), row.matched, columns});
    }
    return new GenericArrayData(out);
  }
}
