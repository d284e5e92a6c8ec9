package io.headgate.kernel.process;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.zip.CRC32;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;

/**
 * What a process function holds of a key as one row, and back: columns on one side, a record and pages on the other.
 *
 * <p>The row has one column for each state. A value is itself, or a struct of {@code value} where it may be null; a list is an
 * array, a map an array of {@code key} and {@code value}. The times at which entries expire are in a second struct.
 */
final class PortableLayout implements Serializable {
  // Pages are laid out as in headgate/functions/states: lists.py, map_cells.py and maps.py.
  private static final int ITEMS = 64;
  private static final int FULL = 32;
  /** The day 1 of Python's dates is the first of the year 1. */
  private static final int EPOCH_ORDINAL = 719_163;

  enum Kind { VALUE, LIST, MAP }

  /** @param ttl in milliseconds; negative for none */
  record State(String name, Kind kind, long ttl, boolean boxed) implements Serializable {
    boolean expires() {
      return ttl >= 0;
    }
  }

  /** Takes an entry of state: its key there, and its value. */
  interface Sink {
    void put(byte[] entry, byte[] value);
  }

  private final StateSchemas schemas;
  private final List<State> states;
  /** The place of each list and map among the pages; -1 of values. */
  private final int[] vars;
  /** The place of each state among those that expire; -1 of others. */
  private final int[] moments;
  private transient UnsafeProjection[] packers;

  PortableLayout(StateSchemas schemas, JsonNode declared) {
    this.schemas = schemas;
    states = new ArrayList<>();
    for (JsonNode each : declared)
      states.add(new State(
          each.get("name").asText(), Kind.valueOf(each.get("kind").asText().toUpperCase(Locale.ROOT)),
          each.get("ttl").asLong(-1), each.get("boxed").asBoolean()));
    vars = new int[states.size()];
    moments = new int[states.size()];
    int pages = 0;
    int expiring = 0;
    for (int i = 0; i < vars.length; i++) {
      vars[i] = states.get(i).kind() == Kind.VALUE ? -1 : pages++;
      moments[i] = states.get(i).expires() ? expiring++ : -1;
    }
  }

  List<State> states() {
    return states;
  }

  /** Returns what the struct of expiries has of a state; null without any. */
  Object expiries(InternalRow expires, int i) {
    if (expires == null || moments[i] < 0 || expires.isNullAt(moments[i])) return null;
    return states.get(i).kind() == Kind.VALUE ? (Object) expires.getLong(moments[i]) : expires.getArray(moments[i]);
  }

  /**
   * Returns a row of two structs: the states, and when they expire.
   *
   * @param record as state has it; null for none
   * @param pages their places and values, in order
   */
  InternalRow row(byte[] record, ArrayData pages) {
    if (record == null) return new GenericInternalRow(2);
    Object[] values = new Object[states.size()];
    Object[] times = new Object[(int) states.stream().filter(State::expires).count()];
    UnsafeRow held = schemas.record().read(record).copy();
    for (int i = 0; i < values.length; i++) {
      StructType form = form(i);
      InternalRow part = held.isNullAt(i) ? null : held.getStruct(i, form.length());
      Object expires = null;
      if (states.get(i).kind() != Kind.VALUE) {
        var entries = new ArrayList<Object>();
        var moments = new ArrayList<Object>();
        if (part != null) read(i, pages, entries, moments);
        values[i] = new GenericArrayData(entries.toArray());
        expires = new GenericArrayData(moments.toArray());
      } else if (part != null) {
        Object value = get(part, 0, form.fields()[0].dataType());
        values[i] = states.get(i).boxed() ? new GenericInternalRow(new Object[] {value}) : value;
        expires = part.isNullAt(1) ? null : part.getLong(1);
      }
      if (moments[i] >= 0) times[moments[i]] = expires;
    }
    return new GenericInternalRow(new Object[] {new GenericInternalRow(values), new GenericInternalRow(times)});
  }

  private void read(int i, ArrayData pages, List<Object> entries, List<Object> moments) {
    byte number = (byte) schemas.number(vars[i]);
    boolean list = states.get(i).kind() == Kind.LIST;
    for (int j = 0; j < pages.numElements(); j++) {
      InternalRow place = pages.getStruct(j, 2);
      if (place.getBinary(0)[0] != number) continue;
      StructType form = page(i);
      UnsafeRow page = schemas.page(vars[i]).read(place.getBinary(1)).copy();
      if (page.isNullAt(0)) continue;
      ArrayData keys = page.getArray(0);
      ArrayData values = list ? null : page.getArray(1);
      int last = form.length() - 1;
      ArrayData expires = page.isNullAt(last) ? null : page.getArray(last);
      for (int k = 0; k < keys.numElements(); k++) {
        Object key = get(keys, k, element(form, 0));
        entries.add(list ? key : new GenericInternalRow(new Object[] {key, get(values, k, element(form, 1))}));
        moments.add(expires == null || expires.isNullAt(k) ? null : expires.getLong(k));
      }
    }
  }

  /**
   * Lays out a row.
   *
   * @param now what expires, and has no time for it, does so as if it were written then
   * @return when the key is cleaned up; null if it is not
   */
  Long write(byte[] key, InternalRow row, InternalRow expires, long now, Sink into) {
    if (row == null) return null;
    Object[] record = new Object[states.size() + 1];
    Long due = null;
    for (int i = 0; i < states.size(); i++) {
      if (row.isNullAt(i)) continue;
      State state = states.get(i);
      ArrayData entries = state.kind() == Kind.VALUE ? null : row.getArray(i);
      int count = entries == null ? 1 : entries.numElements();
      if (count == 0) continue;
      long[] times = times(i, count, expiries(expires, i), now);
      Long oldest = times == null ? null : Arrays.stream(times).min().getAsLong();
      record[i] = switch (state.kind()) {
        case VALUE -> new GenericInternalRow(new Object[] {value(row, i), oldest});
        case LIST -> new GenericInternalRow(new Object[] {0L, writeList(key, i, entries, times, into), (long) count, oldest});
        case MAP -> new GenericInternalRow(new Object[] {(long) count, writeMap(key, i, entries, times, into), oldest});
      };
      if (oldest != null && (due == null || oldest + state.ttl() / 4 < due)) due = oldest + state.ttl() / 4;
    }
    if (Arrays.stream(record).allMatch(Objects::isNull)) return null;
    record[states.size()] = due;
    UnsafeRow packed = packer(-1).apply(new GenericInternalRow(record));
    into.put(KeyStore.recordKey(key), schemas.record().write(packed));
    return due;
  }

  private Object value(InternalRow row, int i) {
    DataType type = form(i).fields()[0].dataType();
    return states.get(i).boxed() ? get(row.getStruct(i, 1), 0, type) : row.get(i, type);
  }

  private long[] times(int i, int count, Object given, long now) {
    State state = states.get(i);
    if (!state.expires()) return null;
    long[] times = new long[count];
    long before = Long.MIN_VALUE;
    for (int j = 0; j < count; j++) {
      times[j] = now + state.ttl();
      if (given instanceof Long only) times[j] = only;
      if (given instanceof ArrayData all && !all.isNullAt(j)) times[j] = all.getLong(j);
      // Items of a list expire in their order.
      if (state.kind() == Kind.LIST) times[j] = before = Math.max(times[j], before);
    }
    return times;
  }

  /** Returns the number of pages. */
  private long writeList(byte[] key, int i, ArrayData items, long[] times, Sink into) {
    DataType type = element(page(i), 0);
    long number = 0;
    for (int from = 0; from < items.numElements(); from += ITEMS, number++) {
      int to = Math.min(items.numElements(), from + ITEMS);
      var part = new ArrayList<Object>();
      var expires = new ArrayList<Object>();
      for (int j = from; j < to; j++) {
        part.add(get(items, j, type));
        if (times != null) expires.add(times[j]);
      }
      put(key, i, number, into, array(part), times == null ? null : array(expires));
    }
    return number;
  }

  /** Returns the number of pages; empty ones are not stored. */
  private long writeMap(byte[] key, int i, ArrayData entries, long[] times, Sink into) {
    StructType form = page(i);
    int count = -Math.floorDiv(-entries.numElements(), FULL);
    var pages = new ArrayList<List<Integer>>();
    for (int page = 0; page < count; page++) pages.add(new ArrayList<>());
    for (int j = 0; j < entries.numElements(); j++)
      pages.get(pageOf(encoded(entries.getStruct(j, 2), element(form, 0)), count)).add(j);
    for (int page = 0; page < count; page++) {
      var keys = new ArrayList<Object>();
      var values = new ArrayList<Object>();
      var expires = new ArrayList<Object>();
      for (int j : pages.get(page)) {
        InternalRow entry = entries.getStruct(j, 2);
        keys.add(get(entry, 0, element(form, 0)));
        values.add(get(entry, 1, element(form, 1)));
        if (times != null) expires.add(times[j]);
      }
      if (!keys.isEmpty()) put(key, i, page, into, array(keys), array(values), times == null ? null : array(expires));
    }
    return count;
  }

  private void put(byte[] key, int i, long number, Sink into, Object... columns) {
    UnsafeRow packed = packer(vars[i]).apply(new GenericInternalRow(columns));
    into.put(KeyStore.pageKeyOf(key, schemas.number(vars[i]), number), schemas.page(vars[i]).write(packed));
  }

  /** Returns the page of a key by linear hashing, as {@code MapState._number} of maps.py does. */
  static int pageOf(byte[] key, int count) {
    if (count == 1) return 0;
    var sum = new CRC32();
    sum.update(key);
    int bits = Integer.SIZE - Integer.numberOfLeadingZeros(count - 1);
    long number = sum.getValue() & (1L << bits) - 1;
    return (int) (number < count ? number : sum.getValue() & (1L << bits - 1) - 1);
  }

  /** Returns the key of an entry as {@code _ENCODINGS} of maps.py does. */
  static byte[] encoded(InternalRow entry, DataType type) {
    if (type instanceof StringType) return entry.getUTF8String(0).getBytes();
    if (type instanceof BinaryType) return entry.getBinary(0);
    if (type instanceof BooleanType) return new byte[] {(byte) (entry.getBoolean(0) ? 1 : 0)};
    if (type instanceof DateType) return little(Integer.BYTES).putInt(entry.getInt(0) + EPOCH_ORDINAL).array();
    long number = type instanceof TimestampType ? entry.getLong(0) : ((Number) entry.get(0, type)).longValue();
    return little(Long.BYTES).putLong(number).array();
  }

  private static ByteBuffer little(int bytes) {
    return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  /** @param var -1 for records */
  private UnsafeProjection packer(int var) {
    if (packers == null) packers = new UnsafeProjection[schemas.vars() + 1];
    if (packers[var + 1] == null) {
      StructType type = var < 0 ? schemas.record().schema() : schemas.page(var).schema();
      packers[var + 1] = UnsafeProjection.create(type.asNullable());
    }
    return packers[var + 1];
  }

  private StructType form(int i) {
    return (StructType) schemas.record().schema().fields()[i].dataType();
  }

  private StructType page(int i) {
    return schemas.page(vars[i]).schema();
  }

  private static DataType element(StructType page, int i) {
    return ((ArrayType) page.fields()[i].dataType()).elementType();
  }

  private static Object get(SpecializedGetters of, int i, DataType type) {
    return of.isNullAt(i) ? null : of.get(i, type);
  }

  private static ArrayData array(List<Object> of) {
    return new GenericArrayData(of.toArray());
  }
}
