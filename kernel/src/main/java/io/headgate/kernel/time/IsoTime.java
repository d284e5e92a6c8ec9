package io.headgate.kernel.time;

import java.time.DateTimeException;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.temporal.TemporalAccessor;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Reads times as ISO 8601 writes them; without a zone they are UTC, a date alone is its midnight, what is finer than a
 * millisecond is cut off.
 *
 * <p>The usual form, {@code 2025-09-04T10:00:00[.123…][Z|+02:00]}, is read here by hand: it comes once per record. The rest
 * is left to java.time.
 */
public final class IsoTime {
  /** What a text is that is no time. */
  public static final long NONE = Long.MIN_VALUE;

  private static final int SECONDS_END = 19;

  private IsoTime() {}

  /** Returns epoch milliseconds, or NONE. */
  public static long parse(UTF8String text) {
    long found = usual(text.getBaseObject(), text.getBaseOffset(), text.numBytes());
    return found != NONE ? found : other(text.toString().strip());
  }

  private static long usual(Object base, long start, int length) {
    if (length < SECONDS_END || !isPunctuated(base, start)) return NONE;
    int year = digits(base, start, 0, 4);
    int month = digits(base, start, 5, 2);
    int day = digits(base, start, 8, 2);
    int hour = digits(base, start, 11, 2);
    int minute = digits(base, start, 14, 2);
    int second = digits(base, start, 17, 2);
    // Digits that are none make the sum of bits negative.
    if ((year | month | day | hour | minute | second) < 0) return NONE;
    if (month < 1 || month > 12 || day < 1 || day > days(year, month) || hour > 23 || minute > 59 || second > 59) return NONE;
    int at = SECONDS_END;
    int millis = 0;
    if (at < length && Platform.getByte(base, start + at) == '.') {
      int end = at + 1;
      while (end < length && isDigit(Platform.getByte(base, start + end))) end++;
      int count = end - at - 1;
      if (count < 1 || count > 9) return NONE;
      for (int i = 1; i <= 3; i++) millis = millis * 10 + (i <= count ? Platform.getByte(base, start + at + i) - '0' : 0);
      at = end;
    }
    int offset = offset(base, start, at, length);
    if (offset == Integer.MIN_VALUE) return NONE;
    long minutes = epochDay(year, month, day) * 1440 + hour * 60L + minute - offset;
    return (minutes * 60 + second) * 1000 + millis;
  }

  private static boolean isPunctuated(Object base, long start) {
    byte between = Platform.getByte(base, start + 10);
    return Platform.getByte(base, start + 4) == '-' && Platform.getByte(base, start + 7) == '-'
        && (between == 'T' || between == ' ')
        && Platform.getByte(base, start + 13) == ':' && Platform.getByte(base, start + 16) == ':';
  }

  /** Returns the zone behind a time in minutes; the least integer where there is something else. */
  private static int offset(Object base, long start, int at, int length) {
    if (at == length) return 0;
    byte sign = Platform.getByte(base, start + at);
    if (sign == 'Z') return at + 1 == length ? 0 : Integer.MIN_VALUE;
    if (sign != '+' && sign != '-' || at + 6 != length || Platform.getByte(base, start + at + 3) != ':')
      return Integer.MIN_VALUE;
    int hours = digits(base, start, at + 1, 2);
    int minutes = digits(base, start, at + 4, 2);
    if ((hours | minutes) < 0 || hours > 18 || minutes > 59) return Integer.MIN_VALUE;
    return sign == '+' ? hours * 60 + minutes : -(hours * 60 + minutes);
  }

  /** Returns a number of so many digits; a negative one where they are not all digits. */
  private static int digits(Object base, long start, int at, int count) {
    int number = 0;
    for (int i = at; i < at + count; i++) {
      byte digit = Platform.getByte(base, start + i);
      if (!isDigit(digit)) return -1;
      number = number * 10 + digit - '0';
    }
    return number;
  }

  private static boolean isDigit(byte b) {
    return b >= '0' && b <= '9';
  }

  private static int days(int year, int month) {
    if (month == 2) return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
  }

  /** Returns the days since 1970, as {@link LocalDate#toEpochDay} counts them. */
  private static long epochDay(int year, int month, int day) {
    long y = year;
    long total = 365 * y + (y + 3) / 4 - (y + 99) / 100 + (y + 399) / 400 + (367L * month - 362) / 12 + day - 1;
    if (month > 2) total -= days(year, 2) == 29 ? 1 : 2;
    return total - 719_528;
  }

  private static long other(String text) {
    int blank = text.indexOf(' ');
    String joined = blank == 10 ? text.substring(0, 10) + 'T' + text.substring(11) : text;
    try {
      if (joined.indexOf('T') < 0 && joined.indexOf('t') < 0)
        return millis(LocalDate.parse(joined).atStartOfDay());
      TemporalAccessor found =
          DateTimeFormatter.ISO_DATE_TIME.parseBest(withColon(joined), ZonedDateTime::from, LocalDateTime::from);
      if (found instanceof ZonedDateTime zoned) return zoned.toInstant().toEpochMilli();
      return millis(LocalDateTime.from(found));
    } catch (DateTimeException | ArithmeticException e) {
      return NONE;
    }
  }

  /** Returns a text whose zone is written short, {@code +02} or {@code +0200}, as {@code +02:00}. */
  private static String withColon(String text) {
    int sign = Math.max(text.lastIndexOf('+'), text.lastIndexOf('-'));
    String zone = sign > 10 ? text.substring(sign + 1) : "";
    if (zone.matches("\\d{2}")) return text + ":00";
    return zone.matches("\\d{4}") ? text.substring(0, sign + 3) + ":" + text.substring(sign + 3) : text;
  }

  private static long millis(LocalDateTime time) {
    return time.toInstant(ZoneOffset.UTC).toEpochMilli();
  }
}
