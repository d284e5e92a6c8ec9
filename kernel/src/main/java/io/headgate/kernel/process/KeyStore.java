package io.headgate.kernel.process;

import io.headgate.kernel.operators.RowCache;
import io.headgate.kernel.rows.BytesEncoder;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.streaming.MapState;
import org.apache.spark.sql.streaming.StatefulProcessorHandle;
import org.apache.spark.sql.streaming.TTLConfig;
import org.apache.spark.sql.types.StructType;

/**
 * The records of keys, and the pages of their lists and maps; of the present bucket.
 *
 * <p>A page's key in state: a byte 1, the length of the key (big endian), the key, the number of its list or map, the number of
 * the page (big endian). A record's: a byte 0, the key.
 */
final class KeyStore {
  static final String NAME = "state";

  private static final byte RECORD = 0;
  private static final byte PAGE = 1;
  /** What {@link #recent} has of a key that has no record. */
  private static final byte[] NONE = {};

  private final StateSchemas schemas;
  private final MapState<byte[], byte[]> state;
  private final RowCache recent;
  private final UnsafeRow empty;

  /** @param recent records as state has them */
  KeyStore(StatefulProcessorHandle handle, StateSchemas schemas, RowCache recent) {
    this.schemas = schemas;
    this.recent = recent;
    state = handle.getMapState(NAME, BytesEncoder.INSTANCE, BytesEncoder.INSTANCE, TTLConfig.NONE());
    StructType type = schemas.record().schema();
    empty = UnsafeProjection.create(type.asNullable()).apply(new GenericInternalRow(type.length())).copy();
  }

  /** Returns the key that an entry of state is of. */
  static byte[] keyOf(byte[] entry) {
    if (entry[0] == RECORD) return Arrays.copyOfRange(entry, 1, entry.length);
    int from = 1 + Integer.BYTES;
    return Arrays.copyOfRange(entry, from, from + ByteBuffer.wrap(entry).getInt(1));
  }

  /** Puts an entry as an earlier run kept it. */
  void put(byte[] entry, byte[] value) {
    state.updateValue(entry, value);
  }

  /** Returns a key's record, or one of nulls; it is valid until the next call. */
  UnsafeRow record(byte[] key) {
    byte[] held = recent.get(key);
    if (held == null) {
      held = state.getValue(recordKey(key));
      if (held == null) return empty;
      recent.put(key, held);
    }
    return held == NONE ? empty : schemas.record().read(held);
  }

  /** @param record null to remove it */
  void setRecord(byte[] key, UnsafeRow record) {
    if (record == null) {
      state.removeKey(recordKey(key));
      recent.put(key, NONE);
    } else {
      byte[] held = schemas.record().write(record);
      state.updateValue(recordKey(key), held);
      recent.put(key, held);
    }
  }

  /** Returns a page of a list or map, or null if there is no such page; it is valid until the next call. */
  UnsafeRow page(byte[] key, int var, long page) {
    byte[] held = state.getValue(pageKey(key, var, page));
    return held == null ? null : schemas.page(var).read(held);
  }

  /** @param row null to remove it */
  void setPage(byte[] key, int var, long page, UnsafeRow row) {
    if (row == null) state.removeKey(pageKey(key, var, page));
    else state.updateValue(pageKey(key, var, page), schemas.page(var).write(row));
  }

  /** Returns the key in state of a key's record. */
  static byte[] recordKey(byte[] key) {
    byte[] out = new byte[1 + key.length];
    out[0] = RECORD;
    System.arraycopy(key, 0, out, 1, key.length);
    return out;
  }

  private byte[] pageKey(byte[] key, int var, long page) {
    return pageKeyOf(key, schemas.number(var), page);
  }

  /** Returns the key in state of a page; {@code number} is that of its list or map in state. */
  static byte[] pageKeyOf(byte[] key, int number, long page) {
    return ByteBuffer.allocate(1 + Integer.BYTES + key.length + 1 + Long.BYTES)
        .put(PAGE).putInt(key.length).put(key).put((byte) number).putLong(page).array();
  }
}
