package io.headgate.kernel.rows;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * The headers of a raw record: for each, its name and its value, one behind the other.
 *
 * <p>Little endian: i32 length of the name, the name, i32 length of the value ({@link RawRecord#NONE}: none), the value.
 */
public final class RawHeaders {
  private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

  /** Takes headers one by one. */
  public interface Taker {
    /** @param valueLength {@link RawRecord#NONE} where the header has no value */
    void take(byte[] from, int nameStart, int nameLength, int valueStart, int valueLength);
  }

  private RawHeaders() {}

  /** Returns the bytes a header takes. */
  public static int size(byte[] name, byte[] value) {
    return 8 + name.length + (value == null ? 0 : value.length);
  }

  /** Writes a header and returns where the next one goes. */
  public static int put(byte[] into, int at, byte[] name, byte[] value) {
    INT.set(into, at, name.length);
    System.arraycopy(name, 0, into, at + 4, name.length);
    int next = at + 4 + name.length;
    INT.set(into, next, value == null ? RawRecord.NONE : value.length);
    if (value != null) System.arraycopy(value, 0, into, next + 4, value.length);
    return next + 4 + (value == null ? 0 : value.length);
  }

  /** Returns a length that is written at a place. */
  public static int length(byte[] record, int at) {
    return (int) INT.get(record, at);
  }

  /** Hands over the headers of a record, in their order. */
  public static void read(byte[] record, Taker taker) {
    int at = RawRecord.headersStart(record);
    int end = at + Math.max(0, RawRecord.headersLength(record));
    while (at < end) {
      int name = (int) INT.get(record, at);
      int value = (int) INT.get(record, at + 4 + name);
      taker.take(record, at + 4, name, at + 8 + name, value);
      at += 8 + name + Math.max(0, value);
    }
  }
}
