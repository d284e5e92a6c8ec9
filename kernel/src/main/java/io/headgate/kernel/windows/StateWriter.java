package io.headgate.kernel.windows;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/** Bytes of state as they are written, little endian, in a buffer that is used again and again. */
final class StateWriter {
  private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

  private byte[] buffer = new byte[256];
  private int at;

  void clear() {
    at = 0;
  }

  int position() {
    return at;
  }

  byte[] toBytes() {
    return Arrays.copyOf(buffer, at);
  }

  void putByte(int v) {
    reserve(1);
    buffer[at++] = (byte) v;
  }

  void putInt(int v) {
    reserve(4);
    INT.set(buffer, at, v);
    at += 4;
  }

  void putLong(long v) {
    reserve(8);
    LONG.set(buffer, at, v);
    at += 8;
  }

  void putDouble(double v) {
    putLong(Double.doubleToRawLongBits(v));
  }

  /** Writes bytes behind their length. */
  void putBytes(byte[] v) {
    putInt(v.length);
    putRaw(v, 0, v.length);
  }

  void putRaw(byte[] from, int start, int length) {
    reserve(length);
    System.arraycopy(from, start, buffer, at, length);
    at += length;
  }

  /** Writes a number at a place that was kept for it. */
  void setInt(int place, int v) {
    INT.set(buffer, place, v);
  }

  private void reserve(int more) {
    if (at + more > buffer.length) buffer = Arrays.copyOf(buffer, Math.max(at + more, 2 * buffer.length));
  }
}
