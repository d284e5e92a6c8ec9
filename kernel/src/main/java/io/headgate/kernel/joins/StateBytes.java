package io.headgate.kernel.joins;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/** Bytes of state, little endian, written into a buffer that is used again or read from where it points. */
final class StateBytes {
  private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle SHORT = MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.LITTLE_ENDIAN);

  private byte[] bytes = new byte[256];
  private int at;

  static long getLong(byte[] from, int at) {
    return (long) LONG.get(from, at);
  }

  static int getShort(byte[] from, int at) {
    return ((short) SHORT.get(from, at)) & 0xffff;
  }

  static int getInt(byte[] from, int at) {
    return (int) INT.get(from, at);
  }

  // Writing.

  void clear() {
    at = 0;
  }

  byte[] toBytes() {
    return Arrays.copyOf(bytes, at);
  }

  void putByte(int v) {
    reserve(1);
    bytes[at++] = (byte) v;
  }

  void putShort(int v) {
    reserve(2);
    SHORT.set(bytes, at, (short) v);
    at += 2;
  }

  void putInt(int v) {
    reserve(4);
    INT.set(bytes, at, v);
    at += 4;
  }

  void putLong(long v) {
    reserve(8);
    LONG.set(bytes, at, v);
    at += 8;
  }

  /** Writes a number in as few bytes as it takes; negative ones take ten. */
  void putCount(long v) {
    reserve(10);
    long left = v;
    while ((left & ~0x7fL) != 0) {
      bytes[at++] = (byte) (left | 0x80);
      left >>>= 7;
    }
    bytes[at++] = (byte) left;
  }

  /** Writes a number of either sign in as few bytes as it takes. */
  void putNumber(long v) {
    putCount(v << 1 ^ v >> 63);
  }

  void putRaw(byte[] from, int start, int length) {
    reserve(length);
    System.arraycopy(from, start, bytes, at, length);
    at += length;
  }

  /** Copies what was written to a place, and returns where that ends. */
  int copyTo(byte[] to, int start) {
    System.arraycopy(bytes, 0, to, start, at);
    return start + at;
  }

  private void reserve(int more) {
    if (at + more > bytes.length) bytes = Arrays.copyOf(bytes, Math.max(at + more, 2 * bytes.length));
  }

  // Reading.

  void point(byte[] to, int start) {
    bytes = to;
    at = start;
  }

  int position() {
    return at;
  }

  boolean hasMore() {
    return at < bytes.length;
  }

  byte getByte() {
    return bytes[at++];
  }

  long getLong() {
    at += 8;
    return (long) LONG.get(bytes, at - 8);
  }

  long getCount() {
    long v = 0;
    for (int shift = 0;; shift += 7) {
      byte next = bytes[at++];
      v |= (next & 0x7fL) << shift;
      if (next >= 0) return v;
    }
  }

  long getNumber() {
    long v = getCount();
    return v >>> 1 ^ -(v & 1);
  }

  void skip(int length) {
    at += length;
  }
}
