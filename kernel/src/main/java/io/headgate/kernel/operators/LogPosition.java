package io.headgate.kernel.operators;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Where a change stands in the log of its database, in a form that is compared byte by byte.
 *
 * <p>Little endian, padded with zeros to 8 bytes:
 *
 * <pre>
 *  0 u8  kind              1 u8  flags            2 u16 unused
 *  4 i32 hash of the log  8 i32 server (0: any)  12 the position, greatest place first, big endian
 * </pre>
 */
public final class LogPosition {
  /** A flag of rows that were read in a snapshot. */
  public static final int SNAPSHOT = 1;

  /** A flag of positions that cannot tell whether a snapshot holds the change. */
  public static final int LOOSE = 2;

  /** The most bytes that one has. */
  static final int MOST = 15 * 8;

  private static final int HEADER = 12;
  private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

  private LogPosition() {}

  /**
   * Returns a position.
   *
   * @param kind what the database calls a position; only positions of one kind are compared
   * @param log names the log: only positions in one log are compared
   * @param server the server whose log it is, where a log may go on at another one; 0 where any may be meant
   * @param place the place in the log, as bytes of one length for all of a kind
   */
  public static byte[] of(int kind, int flags, String log, int server, byte[] place) {
    int size = (HEADER + place.length + 7) / 8 * 8;
    if (size > MOST) throw new IllegalArgumentException("a position of " + place.length + " bytes");
    byte[] out = new byte[size];
    out[0] = (byte) kind;
    out[1] = (byte) flags;
    INT.set(out, 4, Arrays.hashCode(log.getBytes(StandardCharsets.UTF_8)));
    INT.set(out, 8, server);
    System.arraycopy(place, 0, out, HEADER, place.length);
    return out;
  }

  /** Returns whether bytes have the form of a position. */
  public static boolean isValid(byte[] bytes) {
    return bytes.length > HEADER && bytes.length <= MOST && bytes.length % 8 == 0;
  }

  /** Returns whether two positions are in one log, so that {@link #compare} says which change is newer. */
  static boolean areComparable(byte[] a, byte[] b) {
    if (a[0] != b[0] || a.length != b.length || (int) INT.get(a, 4) != (int) INT.get(b, 4)) return false;
    int one = (int) INT.get(a, 8);
    int other = (int) INT.get(b, 8);
    if (one != other && one != 0 && other != 0) return false;
    boolean across = ((a[1] ^ b[1]) & SNAPSHOT) != 0;
    return !across || ((a[1] | b[1]) & LOOSE) == 0;
  }

  /** Compares two positions of one log. */
  static int compare(byte[] a, byte[] b) {
    return Arrays.compareUnsigned(a, HEADER, a.length, b, HEADER, b.length);
  }
}
