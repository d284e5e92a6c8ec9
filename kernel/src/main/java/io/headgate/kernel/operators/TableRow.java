package io.headgate.kernel.operators;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * The form of a table's row in state: which change it is, then the packed row.
 *
 * <p>Little endian; a deleted row stays as a header alone, so that an older change cannot bring it back.
 *
 * <pre>
 *  0 u8  format (1, or 2 with a position)
 *  1 u8  flags (1: deleted; 2 and 4: older deletions without their tombstones; from 8 on: a position's length in 8 bytes)
 *  2 u16 schema version    4 i32 lane
 *  8 i64 sequence    16 i64 timestamp (ms)     24 the position in a database's log, then the packed row
 * </pre>
 */
public final class TableRow {
  static final byte FORMAT = 1;
  static final byte POSITIONED = 2;
  static final int HEADER = 24;
  private static final int DELETED = 1;
  private static final int ECHO_SHIFT = 1;
  private static final int MOST_ECHOES = 3;

  private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle SHORT = MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.LITTLE_ENDIAN);

  /**
   * The change that a row is of.
   *
   * @param lane with {@code sequence} and {@code timestamp}, its place in the topic
   * @param position where it stands in its database's log, as {@link LogPosition} has it; null where only the place counts
   */
  public record Change(boolean deleted, int lane, long sequence, long timestamp, byte[] position) {}

  private TableRow() {}

  public static byte[] of(int schemaVersion, Change change, byte[] from, int start, int length) {
    byte[] position = change.position;
    int body = HEADER + (position == null ? 0 : position.length);
    byte[] out = new byte[body + length];
    out[0] = position == null ? FORMAT : POSITIONED;
    out[1] = (byte) (change.deleted ? DELETED : 0);
    SHORT.set(out, 2, (short) schemaVersion);
    INT.set(out, 4, change.lane);
    LONG.set(out, 8, change.sequence);
    LONG.set(out, 16, change.timestamp);
    if (position != null) {
      out[1] |= (byte) (position.length / 8 << 3);
      System.arraycopy(position, 0, out, HEADER, position.length);
    }
    if (length > 0) System.arraycopy(from, start, out, body, length);
    return out;
  }

  /** Returns where the packed row begins. */
  public static int body(byte[] state) {
    return HEADER + (state[1] >> 3 & 0x1f) * 8;
  }

  public static boolean isDeleted(byte[] state) {
    return (state[1] & DELETED) != 0;
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

  /** Returns the position in a database's log; null where the row has none. */
  public static byte[] position(byte[] state) {
    return body(state) == HEADER ? null : Arrays.copyOfRange(state, HEADER, body(state));
  }

  /** Returns how many older deletions came since without their tombstones; more than {@link #MOST_ECHOES} count as so many. */
  static int echoes(byte[] state) {
    return state[1] >> ECHO_SHIFT & MOST_ECHOES;
  }

  /** Returns the same row with another number of them. Its own place stays: that of the row decides. */
  static byte[] withEchoes(byte[] state, int echoes) {
    byte[] out = state.clone();
    out[1] = (byte) (out[1] & ~(MOST_ECHOES << ECHO_SHIFT) | Math.min(echoes, MOST_ECHOES) << ECHO_SHIFT);
    return out;
  }

  /** Returns whether a change takes the place of what state holds: the same change again does, an older one never. */
  static boolean replaces(int lane, long sequence, long timestamp, byte[] state) {
    if (lane == lane(state)) return sequence >= sequence(state);
    if (timestamp != timestamp(state)) return timestamp > timestamp(state);
    return lane > lane(state);
  }
}
