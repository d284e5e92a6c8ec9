package io.headgate.kernel.rows;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;

/**
 * The form in which every row travels between operators: a fixed header, then packed segments.
 *
 * <p>Little endian. One byte array a row keeps Spark's encoders and generated code the same for every flow.
 *
 * <pre>
 *  0 u8  format (1)        1 u8  kind             2 u16 address (operator or output)
 *  4 u16 source            6 u8  segments         7 u8  flags
 *  8 i64 event time (ms)  16 i32 partition       20 i32 lane (changes)
 * 24 i64 offset           32 i64 timestamp (ms)  40 i64 sequence (changes)
 * 48 i64 ordinal, only if the flags say so; then
 *    i32 length of each segment, padded to 8 bytes, then the segments
 * </pre>
 */
public final class Envelope {
  public static final byte FORMAT = 1;

  /** A row of a table: the newest one of a key counts. Its key is its last segment. */
  public static final byte CHANGE = 0;

  /** The end of a table's row; carries nothing but its key. */
  public static final byte TOMBSTONE = 1;

  /** A row of a stream; its last segment is its key where the operator it goes to keeps something for each. */
  public static final byte EVENT = 2;

  /** An encoded record for an output; its segments are the record's value and, where it has one, its key. */
  public static final byte OUTPUT = 3;

  /** A row that is counted for an output nobody reads; carries no segment. */
  public static final byte COUNTED = 4;

  /** A row of a stream that has no key for the operator it goes to. */
  public static final byte KEYLESS = 5;

  /** Has a bucket of a process operator look at its timers; carries no segment. */
  public static final byte WAKE = 6;

  /** A flag of rows that an operator made when the watermark let it: no operator behind it may take them for late. */
  public static final byte ON_TIME = 1;

  /** A flag of rows that are not the first made of their record: the header ends with their ordinal. */
  static final byte HAS_ORDINAL = 2;

  /** A flag of records that have no value on a log that can hold such: the first segment is their line in an embedded topic. */
  public static final byte NO_VALUE = 4;

  /** The source of rows that no single record stands behind. */
  public static final int NO_SOURCE = 0xffff;

  private static final int HEADER = 48;
  public static final long NO_EVENT_TIME = Long.MIN_VALUE;

  static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
  static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  static final VarHandle SHORT = MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.LITTLE_ENDIAN);

  private Envelope() {}

  public static byte kind(byte[] envelope) {
    return envelope[1];
  }

  public static int address(byte[] envelope) {
    return ((short) SHORT.get(envelope, 2)) & 0xffff;
  }

  public static int source(byte[] envelope) {
    return ((short) SHORT.get(envelope, 4)) & 0xffff;
  }

  /** Returns whether a row is for an operator to handle; it passes all others on. */
  public static boolean isFor(byte[] envelope, int address) {
    byte kind = kind(envelope);
    return kind != OUTPUT && kind != COUNTED && address(envelope) == address;
  }

  public static boolean isOnTime(byte[] envelope) {
    return (envelope[7] & ON_TIME) != 0;
  }

  public static boolean hasValue(byte[] envelope) {
    return (envelope[7] & NO_VALUE) == 0;
  }

  public static int segments(byte[] envelope) {
    return envelope[6] & 0xff;
  }

  public static long eventTime(byte[] envelope) {
    return (long) LONG.get(envelope, 8);
  }

  public static int partition(byte[] envelope) {
    return (int) INT.get(envelope, 16);
  }

  public static int lane(byte[] envelope) {
    return (int) INT.get(envelope, 20);
  }

  public static long offset(byte[] envelope) {
    return (long) LONG.get(envelope, 24);
  }

  public static long timestamp(byte[] envelope) {
    return (long) LONG.get(envelope, 32);
  }

  public static long sequence(byte[] envelope) {
    return (long) LONG.get(envelope, 40);
  }

  /** Returns the place of a row among those made of the same record. */
  public static long ordinal(byte[] envelope) {
    return (envelope[7] & HAS_ORDINAL) == 0 ? 0 : (long) LONG.get(envelope, HEADER);
  }

  /** Orders rows by source, partition and offset; what is equal in all of these, by whatever else tells them apart. */
  public static int comparePositions(byte[] a, byte[] b) {
    int by = compareRecords(a, b);
    return by == 0 ? Arrays.compareUnsigned(a, b) : by;
  }

  /** Orders rows by source, partition and offset; those made of one record by their ordinal. */
  public static int compareRecords(byte[] a, byte[] b) {
    int by = Integer.compare(source(a), source(b));
    if (by == 0) by = Integer.compare(partition(a), partition(b));
    if (by == 0) by = Long.compare(offset(a), offset(b));
    if (by == 0) by = Long.compare(sequence(a), sequence(b));
    if (by == 0) by = Integer.compare(lane(a), lane(b));
    if (by == 0) by = Long.compare(ordinal(a), ordinal(b));
    return by;
  }

  /** Returns the bytes of the last segment. */
  public static byte[] last(byte[] envelope) {
    return Arrays.copyOfRange(envelope, lastStart(envelope), envelope.length);
  }

  /** Orders rows by the bytes of their last segment. */
  public static int compareLast(byte[] a, byte[] b) {
    return Arrays.compareUnsigned(a, lastStart(a), a.length, b, lastStart(b), b.length);
  }

  /** Returns where the rows end that have the same last segment as one of them; rows are ordered by it. */
  public static int endOfRun(List<byte[]> rows, int from) {
    byte[] first = rows.get(from);
    int to = from + 1;
    while (to < rows.size() && compareLast(first, rows.get(to)) == 0) to++;
    return to;
  }

  private static int lastStart(byte[] envelope) {
    return envelope.length - length(envelope, segments(envelope) - 1);
  }

  /** Returns where the lengths of segments begin. */
  static int lengths(byte flags) {
    return (flags & HAS_ORDINAL) == 0 ? HEADER : HEADER + 8;
  }

  /** Returns where the first segment begins. */
  static int body(byte flags, int segments) {
    return lengths(flags) + ((segments + 1) / 2) * 8;
  }

  /** Returns where the first segment of an envelope begins. */
  static int body(byte[] envelope) {
    return body(envelope[7], segments(envelope));
  }

  public static int length(byte[] envelope, int segment) {
    return (int) INT.get(envelope, lengths(envelope[7]) + 4 * segment);
  }

  /** Returns where a segment begins. */
  public static int start(byte[] envelope, int segment) {
    int at = body(envelope);
    for (int i = 0; i < segment; i++) at += length(envelope, i);
    return at;
  }
}
