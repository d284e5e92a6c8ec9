package io.headgate.kernel.operators;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * The event times that dedupe keeps of one key, in order.
 *
 * <p>In state, little endian:
 *
 * <pre>
 *  0 u8 format (2), padded to 8 bytes   8 i64 of each time
 * </pre>
 */
final class KeptTimes {
  private static final byte FORMAT = 2;
  private static final int HEADER = 8;
  private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

  private long[] times = new long[4];
  private int size;

  /** Returns the earliest time that state has. */
  static long earliest(byte[] state) {
    check(state);
    return (long) LONG.get(state, HEADER);
  }

  private static void check(byte[] state) {
    if (state[0] != FORMAT) throw new IllegalStateException("cannot read state of dedupe: its format is " + state[0]);
  }

  /** @param state null for a key that has none */
  void read(byte[] state) {
    size = 0;
    if (state == null) return;
    check(state);
    size = (state.length - HEADER) / Long.BYTES;
    if (size > times.length) times = new long[2 * size];
    for (int i = 0; i < size; i++) times[i] = (long) LONG.get(state, HEADER + Long.BYTES * i);
  }

  byte[] write() {
    byte[] out = new byte[HEADER + Long.BYTES * size];
    out[0] = FORMAT;
    for (int i = 0; i < size; i++) LONG.set(out, HEADER + Long.BYTES * i, times[i]);
    return out;
  }

  boolean isEmpty() {
    return size == 0;
  }

  /** Returns the times, earliest first. */
  long[] all() {
    return Arrays.copyOf(times, size);
  }

  long earliest() {
    return times[0];
  }

  /** Keeps a time, unless there is one less than so many ms from it; returns whether it does. */
  boolean add(long time, long within) {
    int place = Arrays.binarySearch(times, 0, size, time);
    if (place >= 0) return false;
    place = -place - 1;
    if (place > 0 && time - times[place - 1] < within || place < size && times[place] - time < within) return false;
    if (size == times.length) times = Arrays.copyOf(times, 2 * size);
    System.arraycopy(times, place, times, place + 1, size - place);
    times[place] = time;
    size++;
    return true;
  }

  /** Forgets all times up to a moment. */
  void forget(long until) {
    int gone = 0;
    while (gone < size && times[gone] <= until) gone++;
    System.arraycopy(times, gone, times, 0, size - gone);
    size -= gone;
  }
}
