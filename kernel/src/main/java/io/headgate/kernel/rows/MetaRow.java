package io.headgate.kernel.rows;

import java.util.Arrays;
import java.util.LinkedHashMap;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * What a record says beside its value, as a packed row.
 *
 * <p>Key and headers are read as UTF-8 text, with a mark in place of bytes that are none; of a header given twice, the last
 * counts. One of these serves one thread, and the row it returns is overwritten by the next call.
 */
public final class MetaRow {
  public static final StructType SCHEMA = StructType.fromDDL(
      "topic STRING, partition INT NOT NULL, offset BIGINT NOT NULL, timestamp TIMESTAMP NOT NULL, key STRING,"
          + " headers MAP<STRING, STRING> NOT NULL, event_time TIMESTAMP");

  /** The years 0001 and 9999. */
  private static final long FIRST_MS = -62135596800000L;
  private static final long LAST_MS = 253402300799999L;
  private static final Object[] EMPTY = new Object[0];

  private final UnsafeProjection pack = UnsafeProjection.create(SCHEMA);
  private final GenericInternalRow values = new GenericInternalRow(new Object[SCHEMA.length()]);
  private final LinkedHashMap<UTF8String, UTF8String> headers = new LinkedHashMap<>();
  private final UTF8String otherwise;

  /** @param topic what a record is of that does not name its topic */
  public MetaRow(String topic) {
    otherwise = UTF8String.fromString(topic);
  }

  public UnsafeRow of(byte[] record) {
    int topic = RawRecord.topicLength(record);
    values.update(0, topic == 0 ? otherwise : UTF8String.fromBytes(record, RawRecord.topicStart(record), topic));
    values.update(1, RawRecord.partition(record));
    values.update(2, RawRecord.offset(record));
    values.update(3, micros(RawRecord.timestamp(record)));
    values.update(4, text(record, RawRecord.keyStart(record), RawRecord.keyLength(record)));
    values.update(5, headers(record));
    long eventTime = RawRecord.eventTime(record);
    values.update(6, eventTime == RawRecord.NO_TIME ? null : (Object) micros(eventTime));
    return pack.apply(values);
  }

  /** A producer may write any number: one that is no time Spark has becomes the nearest that it has. */
  private static long micros(long ms) {
    return Math.max(FIRST_MS, Math.min(LAST_MS, ms)) * 1000L;
  }

  private ArrayBasedMapData headers(byte[] record) {
    headers.clear();
    RawHeaders.read(record, (from, name, nameLength, value, valueLength) ->
        headers.put(text(from, name, nameLength), text(from, value, valueLength)));
    return new ArrayBasedMapData(
        new GenericArrayData(headers.isEmpty() ? EMPTY : headers.keySet().toArray()),
        new GenericArrayData(headers.isEmpty() ? EMPTY : headers.values().toArray()));
  }

  private static UTF8String text(byte[] from, int start, int length) {
    return length < 0 ? null : UTF8String.fromBytes(Arrays.copyOfRange(from, start, start + length)).makeValid();
  }
}
