package io.headgate.kernel.plan;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BaseGenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.expressions.UnsafeMapData;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Checks how large the result of a function would be, before it is made. Called by generated code.
 *
 * <p>Each check returns true, or throws: a result that does not fit into memory would end the process, and each attempt after
 * it at the same row.
 */
public final class SizeLimits {
  /** The most bytes that one call of a bounded function makes. */
  static final long LIMIT = 16 << 20;

  /** What an element of an array takes: its value, or where the value is. */
  private static final int ELEMENT = 8;

  private static final long MICROS_PER_DAY = 86_400_000_000L;
  /** Spark takes months for at least that long when it sizes a sequence. */
  private static final long MICROS_PER_MONTH = 28 * MICROS_PER_DAY;

  /** Width and precision, as {@link java.util.Formatter} reads them. */
  private static final Pattern SPECIFIER = Pattern.compile("%(?:\\d+\\$)?[-#+ 0,(<]*(\\d+)?(?:\\.(\\d+))?[a-zA-Z%]");
  private static final int MOST_DIGITS = 10;

  private SizeLimits() {}

  /** A result that would be too large; it carries no stack, since it is data. */
  static final class ResultTooLarge extends RuntimeException {
    ResultTooLarge(String message) {
      super(message, null, false, false);
    }
  }

  private static boolean check(double bytes) {
    if (bytes <= LIMIT) return true;
    throw new ResultTooLarge("the result would be larger than " + LIMIT + " bytes");
  }

  /** Checks a text of so many characters, or digits. */
  public static boolean text(int length) {
    return check(length);
  }

  public static boolean repeated(UTF8String text, int times) {
    return check((double) text.numBytes() * times);
  }

  public static boolean padded(UTF8String text, int length, UTF8String pad) {
    // No character has more than four bytes: most calls need not count any.
    if (length <= LIMIT / 4 || pad.numBytes() == 0) return true;
    return check(text.numBytes() + ((double) length - text.numChars()) / pad.numChars() * pad.numBytes());
  }

  public static boolean padded(byte[] bytes, int length, byte[] pad) {
    return check(length);
  }

  /** @param element one of the elements; null for null */
  public static boolean elements(Object element, int count) {
    return check((double) sizeOf(element) * count);
  }

  /** Checks an array that reaches to a place, counted from either end. */
  public static boolean place(int place) {
    return check(Math.abs((double) place) * ELEMENT);
  }

  /** @param unit what a step of 1 is, in units of start and stop */
  public static boolean sequence(long start, long stop, long step, double unit) {
    // Spark refuses a step of zero.
    return step == 0 || check(Math.abs(((double) stop - start) / (step * unit)) * ELEMENT);
  }

  /** @param unit a microsecond, in units of start and stop */
  public static boolean sequence(long start, long stop, CalendarInterval step, double unit) {
    double micros = (double) step.months * MICROS_PER_MONTH + (double) step.days * MICROS_PER_DAY + step.microseconds;
    return micros == 0 || check(Math.abs(((double) stop - start) / (micros * unit)) * ELEMENT);
  }

  /** Checks the widths and precisions that a format asks for. */
  public static boolean format(UTF8String format) {
    double bytes = 0;
    Matcher each = SPECIFIER.matcher(format.toString());
    while (each.find()) bytes += number(each.group(1)) + number(each.group(2));
    return check(bytes);
  }

  private static double number(String digits) {
    if (digits == null) return 0;
    // Java refuses what does not fit 32 bits.
    return digits.length() > MOST_DIGITS ? Integer.MAX_VALUE : Long.parseLong(digits);
  }

  private static long sizeOf(Object value) {
    if (value instanceof UTF8String text) return ELEMENT + text.numBytes();
    if (value instanceof byte[] bytes) return ELEMENT + bytes.length;
    if (value instanceof UnsafeRow row) return ELEMENT + row.getSizeInBytes();
    if (value instanceof UnsafeArrayData array) return ELEMENT + array.getSizeInBytes();
    if (value instanceof UnsafeMapData map) return ELEMENT + map.getSizeInBytes();
    if (value instanceof MapData map) return sizeOf(map.keyArray()) + sizeOf(map.valueArray());
    long size = ELEMENT;
    if (value instanceof GenericArrayData array) for (Object each : array.array()) size += sizeOf(each);
    if (value instanceof BaseGenericInternalRow row)
      for (int i = 0; i < ((InternalRow) row).numFields(); i++) size += sizeOf(row.genericGet(i));
    return size;
  }
}
