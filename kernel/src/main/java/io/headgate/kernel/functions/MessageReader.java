package io.headgate.kernel.functions;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** Reads the sections of a message from a worker, one after the other; numbers are little endian. */
public final class MessageReader {
  private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

  private final byte[] bytes;
  private int start;
  private int length;

  /** Takes a message, all of which is the first section. */
  public MessageReader(byte[] bytes, int length) {
    this.bytes = bytes;
    this.length = length;
  }

  /** Returns the message as one that consists of sections; {@link #next} goes to the first. */
  public static MessageReader ofSections(byte[] bytes) {
    return new MessageReader(bytes, 0);
  }

  /** Goes to the next section and returns its length. */
  public int next() {
    int at = start + length;
    length = (int) INT.get(bytes, at);
    start = at + Integer.BYTES;
    return length;
  }

  /** Returns the whole message. */
  public byte[] bytes() {
    return bytes;
  }

  /** Returns where the present section begins in the message. */
  public int start() {
    return start;
  }

  public int length() {
    return length;
  }

  /** Returns the byte at a place of the present section. */
  public byte byteAt(int place) {
    return bytes[start + place];
  }

  public int intAt(int place) {
    return (int) INT.get(bytes, start + place);
  }

  public long longAt(int place) {
    return (long) LONG.get(bytes, start + place);
  }
}
