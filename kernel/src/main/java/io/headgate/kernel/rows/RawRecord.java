package io.headgate.kernel.rows;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * The form in which every connector hands on a record: where it stood, then topic, key, headers and value as they were.
 *
 * <p>Little endian. One byte array a record costs Spark one column to carry, and the value is decoded where it lies. A record
 * lives between a reader and its decoder only: this form is never kept.
 *
 * <pre>
 *  0 u8  format (1)        1 u8 unused            2 u16 length of the topic (0: not named)
 *  4 i32 partition         8 i64 offset          16 i64 timestamp (ms)
 * 24 i64 sequence         32 i64 size            40 i32 lane
 * 44 i32 length of the key (-1: none)            48 i32 length of the headers (-1: none)
 * 52 i32 length of the value (-1: none)          56 i64 event time (ms, the least number: none)
 * 64 topic, key, headers, value
 * </pre>
 */
public final class RawRecord {
  public static final byte FORMAT = 1;

  /** What a source that gives such records has for a schema. */
  public static final StructType SCHEMA = new StructType().add("record", DataTypes.BinaryType, false);

  /** What is kept of a record that is too large to be taken; a dead letter shows no more. */
  public static final int KEPT = 256 * 1024;

  /** The length of a part that is not there. */
  public static final int NONE = -1;

  /** The event time of a record that its producer gave none. */
  public static final long NO_TIME = Long.MIN_VALUE;

  private static final int HEADER = 64;
  private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle SHORT = MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.LITTLE_ENDIAN);

  private RawRecord() {}

  /**
   * Makes a record with room for key, headers and value, which the caller fills in.
   *
   * @param topic its name in UTF-8; empty where the record does not name it
   * @param timestamp when it was appended; {@code eventTime} what its producer said, or {@link #NO_TIME}
   * @param size the value's full length, more than {@code value} where the reader cut an oversized one
   * @param key the length of the key, or {@link #NONE}; likewise headers and value
   */
  public static byte[] make(
      byte[] topic, int partition, long offset, long timestamp, long eventTime, int lane, long sequence, long size,
      int key, int headers, int value) {
    byte[] out = new byte[HEADER + topic.length + Math.max(0, key) + Math.max(0, headers) + Math.max(0, value)];
    out[0] = FORMAT;
    SHORT.set(out, 2, (short) topic.length);
    INT.set(out, 4, partition);
    LONG.set(out, 8, offset);
    LONG.set(out, 16, timestamp);
    LONG.set(out, 24, sequence);
    LONG.set(out, 32, size);
    INT.set(out, 40, lane);
    INT.set(out, 44, key);
    INT.set(out, 48, headers);
    INT.set(out, 52, value);
    LONG.set(out, 56, eventTime);
    System.arraycopy(topic, 0, out, HEADER, topic.length);
    return out;
  }

  public static int partition(byte[] record) {
    return (int) INT.get(record, 4);
  }

  public static long offset(byte[] record) {
    return (long) LONG.get(record, 8);
  }

  /** Returns when the record was appended, in epoch milliseconds. */
  public static long timestamp(byte[] record) {
    return (long) LONG.get(record, 16);
  }

  /** Returns the time that the producer gave the record beside its value, in epoch milliseconds, or {@link #NO_TIME}. */
  public static long eventTime(byte[] record) {
    return (long) LONG.get(record, 56);
  }

  /** Returns the name of an ordered sequence of records: within one lane the sequence decides which change is newer. */
  public static int lane(byte[] record) {
    return (int) INT.get(record, 40);
  }

  public static long sequence(byte[] record) {
    return (long) LONG.get(record, 24);
  }

  /** Returns the value's full length in bytes; the record may hold fewer. */
  public static long size(byte[] record) {
    return (long) LONG.get(record, 32);
  }

  public static int topicStart(byte[] record) {
    return HEADER;
  }

  /** Returns 0 where the record does not name its topic. */
  public static int topicLength(byte[] record) {
    return ((short) SHORT.get(record, 2)) & 0xffff;
  }

  public static int keyStart(byte[] record) {
    return HEADER + topicLength(record);
  }

  public static int keyLength(byte[] record) {
    return (int) INT.get(record, 44);
  }

  public static int headersStart(byte[] record) {
    return keyStart(record) + Math.max(0, keyLength(record));
  }

  /** Returns how many bytes the headers take, in the form of {@link RawHeaders}. */
  public static int headersLength(byte[] record) {
    return (int) INT.get(record, 48);
  }

  public static int valueStart(byte[] record) {
    return headersStart(record) + Math.max(0, headersLength(record));
  }

  /** Returns how many bytes of the value there are; {@link #NONE} for a record without a value. */
  public static int valueLength(byte[] record) {
    return (int) INT.get(record, 52);
  }
}
