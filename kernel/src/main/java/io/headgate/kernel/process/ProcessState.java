package io.headgate.kernel.process;

import io.headgate.kernel.json.KeyValues;
import io.headgate.kernel.rows.Bucket;
import io.headgate.kernel.state.Form;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * What a process function holds of a key as one row: the key's columns, then one for each value, list and map that it declares.
 *
 * <p>A list is an array and a map an array of {@code key} and {@code value}, each of its first entries alone; beside it stands
 * {@code NAME_size}, the number of all. What has expired is left out, but a size counts it until it is removed. A name that is
 * taken already, by a column of the key or for a size by what is declared, gets an underscore.
 */
public final class ProcessState implements Form {
  /** The most entries of a list or map that a row shows. */
  public static final int MOST = 1000;

  private static final byte RECORD = 0;
  private static final byte PAGE = 1;
  private static final String SIZE = "_size";

  /** How one declared value, list or map is shown. */
  private enum Kind { VALUE, LIST, MAP }

  private final StructType key;
  private final StateSchemas schemas;
  private final StructType schema;
  private final Kind[] kinds;
  /** The place of each list and map among the pages; -1 of values. */
  private final int[] vars;
  private transient KeyValues keys;

  public ProcessState(StructType key, StateSchemas schemas) {
    this.key = key;
    this.schemas = schemas;
    StructType record = schemas.record().schema();
    // The last column says when the key is cleaned up.
    kinds = new Kind[record.length() - 1];
    vars = new int[kinds.length];
    var taken = new HashSet<String>();
    StructType all = key;
    for (StructField field : key.fields()) taken.add(field.name().toLowerCase(Locale.ROOT));
    String[] names = new String[kinds.length];
    for (int i = 0; i < names.length; i++) names[i] = free(record.fields()[i].name(), taken);
    int pages = 0;
    for (int i = 0; i < kinds.length; i++) {
      var form = (StructType) record.fields()[i].dataType();
      kinds[i] = Arrays.asList(form.fieldNames()).contains("value") ? Kind.VALUE : Kind.LIST;
      vars[i] = kinds[i] == Kind.VALUE ? -1 : pages++;
      if (kinds[i] == Kind.LIST && Arrays.asList(form.fieldNames()).contains("pages")) kinds[i] = Kind.MAP;
      all = all.add(names[i], shown(i, form), true);
      if (kinds[i] != Kind.VALUE) all = all.add(free(names[i] + SIZE, taken), DataTypes.LongType, true);
    }
    schema = all;
  }

  private static String free(String name, Set<String> taken) {
    return taken.add(name.toLowerCase(Locale.ROOT)) ? name : free(name + "_", taken);
  }

  private DataType shown(int i, StructType form) {
    return switch (kinds[i]) {
      case VALUE -> form.apply("value").dataType();
      case LIST -> DataTypes.createArrayType(element(vars[i], "items"), true);
      case MAP -> DataTypes.createArrayType(
          new StructType().add("key", element(vars[i], "keys")).add("value", element(vars[i], "values")), true);
    };
  }

  private DataType element(int var, String name) {
    return ((ArrayType) schemas.page(var).schema().apply(name).dataType()).elementType();
  }

  /** Returns the key's columns. */
  public StructType key() {
    return key;
  }

  /** Returns whether any row has pages. */
  public boolean hasPages() {
    return schemas.vars() > 0;
  }

  @Override public StructType schema() {
    return schema;
  }

  @Override public int bucket(byte[] key) {
    return Bucket.of(key) & (ProcessSpec.BUCKETS - 1);
  }

  @Override public byte[] entry(byte[] key) {
    return ByteBuffer.allocate(1 + key.length).put(RECORD).put(key).array();
  }

  @Override public byte[] further(byte[] key) {
    return ByteBuffer.allocate(5 + key.length).put(PAGE).putInt(key.length).put(key).array();
  }

  @Override public int furtherLength(byte[] key) {
    return further(key).length + 9;
  }

  private byte[] page(byte[] key, int number, long page) {
    return ByteBuffer.allocate(furtherLength(key)).put(further(key)).put((byte) number).putLong(page).array();
  }

  @Override public InternalRow read(byte[] key, byte[] value) {
    return read(key, value, wanted -> new byte[wanted.size()][], Long.MIN_VALUE);
  }

  @Override public InternalRow read(byte[] key, byte[] value, Entries entries, long now) {
    if (keys == null) keys = new KeyValues(Arrays.stream(this.key.fields()).map(StructField::dataType).toList());
    Object[] out = new Object[schema.length()];
    keys.read(key, out);
    UnsafeRow record = schemas.record().read(value).copy();
    int at = keys.columns();
    for (int i = 0; i < kinds.length; i++) {
      StructType form = (StructType) schemas.record().schema().fields()[i].dataType();
      InternalRow held = record.isNullAt(i) ? null : record.getStruct(i, form.length());
      if (kinds[i] == Kind.VALUE) {
        out[at++] = held == null ? null : value(held, form, now);
        continue;
      }
      var shown = new ArrayList<Object>();
      if (held != null) fill(shown, i, key, held, form, entries, now);
      out[at++] = new GenericArrayData(shown.toArray());
      out[at++] = held == null ? 0L : held.getLong(form.fieldIndex("size"));
    }
    return new GenericInternalRow(out);
  }

  private static Object value(InternalRow held, StructType form, long now) {
    int expires = form.fieldIndex("expires");
    if (!held.isNullAt(expires) && held.getLong(expires) <= now) return null;
    int at = form.fieldIndex("value");
    return held.isNullAt(at) ? null : held.get(at, form.fields()[at].dataType());
  }

  /** Adds the first entries of a list or map, from as many pages as that takes. */
  private void fill(
      List<Object> into, int i, byte[] key, InternalRow held, StructType form, Entries entries, long now) {
    boolean list = kinds[i] == Kind.LIST;
    long first = list ? held.getLong(form.fieldIndex("first")) : 0;
    long end = held.getLong(form.fieldIndex(list ? "next" : "pages"));
    long size = Math.max(1, held.getLong(form.fieldIndex("size")));
    // So many pages hold what is to be shown, if all are equally full; never more at once, as they may be large.
    long step = Math.max(1, Math.min(MOST, MOST * (end - first) / size + 1));
    for (long from = first; from < end && into.size() < MOST; from += step) {
      var wanted = new ArrayList<byte[]>();
      for (long page = from; page < Math.min(end, from + step); page++)
        wanted.add(page(key, schemas.number(vars[i]), page));
      for (byte[] page : entries.find(wanted)) if (page != null) add(into, i, page, now);
    }
  }

  private void add(List<Object> into, int i, byte[] page, long now) {
    StateUpgrade upgrade = schemas.page(vars[i]);
    UnsafeRow row = upgrade.read(page).copy();
    StructType form = upgrade.schema();
    ArrayData expires = array(row, form, "expires");
    ArrayData items = array(row, form, kinds[i] == Kind.LIST ? "items" : "keys");
    ArrayData values = kinds[i] == Kind.LIST ? null : array(row, form, "values");
    if (items == null) return;
    for (int j = 0; j < items.numElements() && into.size() < MOST; j++) {
      if (expires != null && !expires.isNullAt(j) && expires.getLong(j) <= now) continue;
      if (values == null) into.add(get(items, j, element(vars[i], "items")));
      else into.add(new GenericInternalRow(new Object[] {
          get(items, j, element(vars[i], "keys")), get(values, j, element(vars[i], "values"))}));
    }
  }

  private static ArrayData array(UnsafeRow row, StructType form, String name) {
    int at = form.fieldIndex(name);
    return row.isNullAt(at) ? null : row.getArray(at);
  }

  private static Object get(ArrayData of, int i, DataType type) {
    return of.isNullAt(i) ? null : of.get(i, type);
  }
}
