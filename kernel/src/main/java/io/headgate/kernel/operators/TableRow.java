package io.headgate.kernel.operators;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * The form of a table's row in state: which change it is, then the packed row.
 *
 * <p>Little endian; a deleted row stays as a header alone, so that an older change cannot bring it back.
 *
 * <pre>
 *  0 u8  format (1)   1 u8 flags (1: deleted)   2 u16 schema version   4 i32 lane
 *  8 i64 sequence    16 i64 timestamp (ms)     24 the packed row
 * </pre>
 */
public final class TableRow {
  static final byte FORMAT = 1;
  public static final int HEADER = 24;

  private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle SHORT = MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.LITTLE_ENDIAN);

  private TableRow() {}

  public static byte[] of(int schemaVersion, boolean deleted, int lane, long sequence, long timestamp, byte[] from, int start, int length) {
    byte[] out = new byte[HEADER + length];
    out[0] = FORMAT;
    out[1] = (byte) (deleted ? 1 : 0);
    SHORT.set(out, 2, (short) schemaVersion);
    INT.set(out, 4, lane);
    LONG.set(out, 8, sequence);
    LONG.set(out, 16, timestamp);
    if (length > 0) System.arraycopy(from, start, out, HEADER, length);
    return out;
  }

  public static boolean isDeleted(byte[] state) {
    return (state[1] & 1) != 0;
  }

  static int schemaVersion(byte[] state) {
    return ((short) SHORT.get(state, 2)) & 0xffff;
  }

  public static int lane(byte[] state) {
    return (int) INT.get(state, 4);
  }

  public static long sequence(byte[] state) {
    return (long) LONG.get(state, 8);
  }

  public static long timestamp(byte[] state) {
    return (long) LONG.get(state, 16);
  }

  /** Returns whether a change takes the place of what state holds: the same change again does, an older one never. */
  static boolean replaces(int lane, long sequence, long timestamp, byte[] state) {
    if (lane == lane(state)) return sequence >= sequence(state);
    if (timestamp != timestamp(state)) return timestamp > timestamp(state);
    return lane > lane(state);
  }
}
