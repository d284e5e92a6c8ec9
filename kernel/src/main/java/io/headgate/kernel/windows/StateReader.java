package io.headgate.kernel.windows;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/** Bytes of state as they are read, from wherever it is pointed to. */
final class StateReader {
  private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

  private byte[] bytes;
  private int at;

  void point(byte[] to, int start) {
    bytes = to;
    at = start;
  }

  int position() {
    return at;
  }

  void skip(int length) {
    at += length;
  }

  byte getByte() {
    return bytes[at++];
  }

  int getInt() {
    at += 4;
    return (int) INT.get(bytes, at - 4);
  }

  long getLong() {
    at += 8;
    return (long) LONG.get(bytes, at - 8);
  }

  double getDouble() {
    return Double.longBitsToDouble(getLong());
  }

  /** Reads bytes that stand behind their length. */
  byte[] getBytes() {
    int length = getInt();
    at += length;
    return Arrays.copyOfRange(bytes, at - length, at);
  }
}
