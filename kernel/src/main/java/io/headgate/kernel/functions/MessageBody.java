package io.headgate.kernel.functions;

import java.io.OutputStream;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/** The bytes of a message to a worker, written one after the other and sent without a copy; numbers are little endian. */
public final class MessageBody extends OutputStream {
  private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

  /** An array has at most 2 GiB, less some bytes of its own. */
  private static final int MOST = Integer.MAX_VALUE - 1024;

  private final String function;
  private final int most;
  private byte[] bytes = new byte[4096];
  private int size;

  /** @param function how a failure names the function that is called */
  public MessageBody(String function) {
    this(function, MOST);
  }

  /** @param most the bytes that it may have */
  public MessageBody(String function, int most) {
    this.function = function;
    this.most = most;
  }

  /** Starts over. */
  public void reset() {
    size = 0;
  }

  public int size() {
    return size;
  }

  /** Returns the bytes, of which {@link #size} count. */
  public byte[] array() {
    return bytes;
  }

  @Override public void write(int value) {
    room(1);
    bytes[size++] = (byte) value;
  }

  @Override public void write(byte[] from, int start, int length) {
    room(length);
    System.arraycopy(from, start, bytes, size, length);
    size += length;
  }

  public void writeInt(int value) {
    room(Integer.BYTES);
    INT.set(bytes, size, value);
    size += Integer.BYTES;
  }

  public void writeLong(long value) {
    room(Long.BYTES);
    LONG.set(bytes, size, value);
    size += Long.BYTES;
  }

  /** Begins a section, which is its length and its bytes; returns what {@link #end} needs. */
  public int begin() {
    writeInt(0);
    return size;
  }

  /** Ends a section. */
  public void end(int section) {
    INT.set(bytes, section - Integer.BYTES, size - section);
  }

  private void room(int more) {
    if (bytes.length - size >= more) return;
    long needed = (long) size + more;
    if (needed > most) throw FunctionFailure.tooLarge(function, most);
    bytes = Arrays.copyOf(bytes, (int) Math.max(needed, Math.min(2L * bytes.length, most)));
  }
}
