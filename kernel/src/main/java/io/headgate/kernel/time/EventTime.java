package io.headgate.kernel.time;

import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import io.headgate.kernel.rows.Layout;
import java.io.Serializable;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;

/** Reads when a row happened from the column that says so: a number since 1970, a timestamp or a text. */
public final class EventTime implements Serializable {
  /** The beginning of the year 1: what lies before has no date that anybody can write. */
  public static final long FIRST = -62_135_596_800_000L;

  /** The beginning of the year 9999: windows of up to a year end before event time does, which is when that year ends. */
  public static final long LAST = 253_370_764_800_000L;

  private enum Form { BYTE, SHORT, INT, LONG, DOUBLE, TIMESTAMP, TEXT }

  /** A double near today's seconds is off by up to a quarter of a microsecond: that must not cost a millisecond. */
  private static final double ROUNDING_MS = 0.001;

  private final String name;
  private final int ordinal;
  private final Form form;
  private final long scale;

  /** @param unit what numbers count: {@code ms} or {@code s} */
  public EventTime(Layout.Path column, String unit) {
    name = column.name();
    ordinal = column.last();
    form = form(column.type());
    scale = unit.equals("s") ? 1000 : 1;
  }

  private static Form form(DataType type) {
    if (type instanceof LongType) return Form.LONG;
    if (type instanceof IntegerType) return Form.INT;
    if (type instanceof ShortType) return Form.SHORT;
    if (type instanceof ByteType) return Form.BYTE;
    if (type instanceof DoubleType) return Form.DOUBLE;
    if (type instanceof TimestampType) return Form.TIMESTAMP;
    if (type instanceof StringType) return Form.TEXT;
    throw new IllegalArgumentException("no event time: a column of type " + type.sql());
  }

  /** Returns when a row happened, in epoch milliseconds. */
  public long of(UnsafeRow row) throws BadRecord {
    if (row.isNullAt(ordinal))
      throw new BadRecord(Reason.MISSING_FIELD, "no event time: column '" + name + "' is null or missing");
    return switch (form) {
      case LONG -> number(row.getLong(ordinal));
      case INT -> number(row.getInt(ordinal));
      case SHORT -> number(row.getShort(ordinal));
      case BYTE -> number(row.getByte(ordinal));
      case DOUBLE -> number(row.getDouble(ordinal));
      case TIMESTAMP -> number(Math.floorDiv(row.getLong(ordinal), 1000L), 1);
      case TEXT -> text(row.getUTF8String(ordinal));
    };
  }

  private long number(long value) throws BadRecord {
    return number(value, scale);
  }

  private long number(long value, long scale) throws BadRecord {
    // Divided, since the product of a number that is no time may overflow.
    if (value < FIRST / scale || value > (LAST - 1) / scale) throw outside(Long.toString(value));
    return value * scale;
  }

  private long number(double value) throws BadRecord {
    double ms = Math.floor(value * scale + ROUNDING_MS);
    if (!(ms >= FIRST && ms < LAST)) throw outside(Double.toString(value));
    return (long) ms;
  }

  private long text(UTF8String value) throws BadRecord {
    long ms = IsoTime.parse(value);
    if (ms == IsoTime.NONE)
      throw new BadRecord(Reason.BAD_EVENT_TIME,
          "no event time: column '" + name + "' is '" + shortened(value.toString()) + "', which is not an ISO 8601 time");
    if (ms < FIRST || ms >= LAST) throw outside(shortened(value.toString()));
    return ms;
  }

  private BadRecord outside(String value) {
    return new BadRecord(Reason.BAD_EVENT_TIME,
        "no event time: column '" + name + "' is " + value + ", which lies outside the years 1 to 9998");
  }

  private static String shortened(String text) {
    return text.length() <= 40 ? text : text.substring(0, 40) + "…";
  }
}
