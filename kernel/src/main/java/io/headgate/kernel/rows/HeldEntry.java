package io.headgate.kernel.rows;

import java.nio.ByteBuffer;

/**
 * A key and what an operator holds of it in one, the form in which another query takes state over: the length of the key (big
 * endian), the key, what it holds.
 */
public final class HeldEntry {
  private HeldEntry() {}

  public static byte[] pack(byte[] key, byte[] value) {
    return ByteBuffer.allocate(Integer.BYTES + key.length + value.length).putInt(key.length).put(key).put(value).array();
  }

  public static byte[] key(byte[] entry) {
    ByteBuffer bytes = ByteBuffer.wrap(entry);
    byte[] key = new byte[bytes.getInt()];
    bytes.get(key);
    return key;
  }

  public static byte[] value(byte[] entry) {
    ByteBuffer bytes = ByteBuffer.wrap(entry);
    bytes.position(Integer.BYTES + bytes.getInt());
    byte[] value = new byte[bytes.remaining()];
    bytes.get(value);
    return value;
  }
}
