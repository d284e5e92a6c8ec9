package io.headgate.kernel.formats.avro;

import java.util.Arrays;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** Bytes in Avro's binary encoding, one value behind the other. */
final class AvroOutput {
  private static final int LONGEST_INTEGER = 10;

  private byte[] bytes = new byte[1024];
  private int size;

  void clear() {
    size = 0;
  }

  byte[] toBytes() {
    return Arrays.copyOf(bytes, size);
  }

  private void reserve(int more) {
    if (more > bytes.length - size)
      bytes = Arrays.copyOf(bytes, Math.max(Math.addExact(size, more), (int) Math.min(2L * bytes.length, Integer.MAX_VALUE - 16)));
  }

  void add(int b) {
    reserve(1);
    bytes[size++] = (byte) b;
  }

  /** Adds an int or a long, which have one form. */
  void addLong(long value) {
    reserve(LONGEST_INTEGER);
    long n = (value << 1) ^ (value >> 63);
    while ((n & ~0x7fL) != 0) {
      bytes[size++] = (byte) (n | 0x80);
      n >>>= 7;
    }
    bytes[size++] = (byte) n;
  }

  void addFloat(float value) {
    addFixed(Float.floatToRawIntBits(value), 4);
  }

  void addDouble(double value) {
    addFixed(Double.doubleToRawLongBits(value), 8);
  }

  private void addFixed(long bits, int count) {
    reserve(count);
    for (int i = 0; i < count; i++) bytes[size++] = (byte) (bits >>> 8 * i);
  }

  /** Adds four bytes, the highest first. */
  void addBigEndian(int value) {
    reserve(4);
    for (int shift = 24; shift >= 0; shift -= 8) bytes[size++] = (byte) (value >>> shift);
  }

  void addRaw(byte[] value) {
    reserve(value.length);
    System.arraycopy(value, 0, bytes, size, value.length);
    size += value.length;
  }

  void addBytes(byte[] value) {
    addLong(value.length);
    addRaw(value);
  }

  void addText(UTF8String text) {
    int length = text.numBytes();
    addLong(length);
    reserve(length);
    text.writeToMemory(bytes, Platform.BYTE_ARRAY_OFFSET + (long) size);
    size += length;
  }
}
