package io.headgate.kernel.process;

import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.JsonDecoder;
import java.io.Serializable;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;

/**
 * Every schema that one kind of a process function's rows has had; presents rows of an older one by the present one.
 *
 * <p>Fields are found by name, at any depth. A field that an old row lacks gets its default, or null. For one thread at a time.
 *
 * <p>The form of a row in state, little endian:
 *
 * <pre>
 *  0 u8 format (1)   1 u8 0   2 u16 schema version   4 i32 0   8 the packed row
 * </pre>
 */
public final class StateUpgrade implements Serializable {
  /** The key under which a field's metadata holds its default. */
  private static final String DEFAULT = "headgate.default";

  private static final byte FORMAT = 1;
  private static final int HEADER = 8;
  private static final VarHandle SHORT = MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.LITTLE_ENDIAN);

  private final List<StructType> history;
  private transient UnsafeRow present;
  private transient UnsafeRow[] old;
  private transient Change[] changes;
  private transient UnsafeProjection packer;

  /** Takes over one value of an older schema. */
  private interface Change {
    Object of(SpecializedGetters holder, int i);
  }

  /** @param history version n is the n-th, counted from 1; null for a version without such rows */
  public StateUpgrade(List<StructType> history) {
    this.history = new ArrayList<>(history);
  }

  /** Returns the number of the present version. */
  public int current() {
    return history.size();
  }

  /** Returns the present schema. */
  public StructType schema() {
    return history.get(history.size() - 1);
  }

  /** Returns a row of state by the present schema; it is valid until the next call. */
  public UnsafeRow read(byte[] held) {
    if (held[0] != FORMAT) throw new IllegalStateException("cannot read state of a process function: its format is " + held[0]);
    return present(((short) SHORT.get(held, 2)) & 0xffff, held, HEADER);
  }

  /** Returns a row of the present schema as state has it. */
  public byte[] write(UnsafeRow row) {
    byte[] out = new byte[HEADER + row.getSizeInBytes()];
    out[0] = FORMAT;
    SHORT.set(out, 2, (short) current());
    row.writeToMemory(out, Platform.BYTE_ARRAY_OFFSET + (long) HEADER);
    return out;
  }

  /**
   * Returns a row by the present schema; it is valid until the next call.
   *
   * @param version of the row, which is an UnsafeRow from {@code offset} to the end of {@code bytes}
   */
  public UnsafeRow present(int version, byte[] bytes, int offset) {
    if (present == null) prepare();
    if (version == current()) return point(present, bytes, offset);
    if (version < 1 || version > current() || history.get(version - 1) == null)
      throw new IllegalStateException("cannot read state: it has schema " + version + ", and the latest is " + current());
    StructType type = history.get(version - 1);
    if (changes[version - 1] == null) {
      old[version - 1] = new UnsafeRow(type.length());
      changes[version - 1] = struct(type, schema());
    }
    // The row is a struct that no other row holds.
    var holder = new GenericInternalRow(new Object[] {point(old[version - 1], bytes, offset)});
    return packer.apply((InternalRow) changes[version - 1].of(holder, 0));
  }

  private void prepare() {
    packer = UnsafeProjection.create(schema().asNullable());
    old = new UnsafeRow[current()];
    changes = new Change[current()];
    present = new UnsafeRow(schema().length());
  }

  private static UnsafeRow point(UnsafeRow row, byte[] bytes, int offset) {
    row.pointTo(bytes, Platform.BYTE_ARRAY_OFFSET + (long) offset, bytes.length - offset);
    return row;
  }

  private static Change change(DataType from, DataType to) {
    if (isSame(from, to)) return (holder, i) -> holder.isNullAt(i) ? null : holder.get(i, from);
    if (from instanceof StructType old && to instanceof StructType now) return struct(old, now);
    if (from instanceof ArrayType old && to instanceof ArrayType now) {
      Change element = change(old.elementType(), now.elementType());
      return (holder, i) -> holder.isNullAt(i) ? null : elements(holder.getArray(i), element);
    }
    if (from instanceof MapType old && to instanceof MapType now) {
      Change key = change(old.keyType(), now.keyType());
      Change value = change(old.valueType(), now.valueType());
      return (holder, i) -> holder.isNullAt(i) ? null : entries(holder.getMap(i), key, value);
    }
    throw new IllegalStateException("cannot read state: a value of " + from.sql() + " does not become " + to.sql());
  }

  private static Change struct(StructType from, StructType to) {
    int width = from.length();
    List<String> names = Arrays.asList(from.fieldNames());
    int[] places = new int[to.length()];
    Change[] fields = new Change[to.length()];
    for (int i = 0; i < fields.length; i++) {
      StructField field = to.fields()[i];
      places[i] = names.indexOf(field.name());
      Object missing = places[i] < 0 ? defaultOf(field) : null;
      fields[i] = places[i] < 0
          ? (holder, at) -> missing : change(from.fields()[places[i]].dataType(), field.dataType());
    }
    return (holder, i) -> {
      if (holder.isNullAt(i)) return null;
      InternalRow row = holder.getStruct(i, width);
      Object[] values = new Object[fields.length];
      for (int j = 0; j < fields.length; j++) values[j] = fields[j].of(row, places[j]);
      return new GenericInternalRow(values);
    };
  }

  private static ArrayData elements(ArrayData of, Change element) {
    Object[] out = new Object[of.numElements()];
    for (int i = 0; i < out.length; i++) out[i] = element.of(of, i);
    return new GenericArrayData(out);
  }

  private static MapData entries(MapData of, Change key, Change value) {
    return new ArrayBasedMapData(elements(of.keyArray(), key), elements(of.valueArray(), value));
  }

  /** Returns what a field holds in a row that lacks it. */
  private static Object defaultOf(StructField field) {
    if (!field.metadata().contains(DEFAULT)) return null;
    var alone = new StructField(field.name(), field.dataType(), true, field.metadata());
    try {
      return new JsonDecoder(new StructType().add(alone), false)
          .decode(new byte[] {'{', '}'}).copy().get(0, field.dataType());
    } catch (BadRecord e) {
      throw new IllegalStateException(e);
    }
  }

  /** Returns whether values of two types have the same bytes and the same names. */
  private static boolean isSame(DataType a, DataType b) {
    if (a instanceof StructType one && b instanceof StructType other) {
      if (!Arrays.equals(one.fieldNames(), other.fieldNames())) return false;
      for (int i = 0; i < one.length(); i++)
        if (!isSame(one.fields()[i].dataType(), other.fields()[i].dataType())) return false;
      return true;
    }
    if (a instanceof ArrayType one && b instanceof ArrayType other) return isSame(one.elementType(), other.elementType());
    if (a instanceof MapType one && b instanceof MapType other)
      return isSame(one.keyType(), other.keyType()) && isSame(one.valueType(), other.valueType());
    return a.equals(b);
  }
}
