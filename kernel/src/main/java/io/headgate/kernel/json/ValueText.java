package io.headgate.kernel.json;

import java.math.BigDecimal;
import java.time.DateTimeException;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.time.temporal.ChronoField;
import java.time.temporal.TemporalAccessor;
import java.util.Base64;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;

/** The texts of values that every format of text has in common: what is accepted, and what is written. */
public final class ValueText {
  /** A text that is not of the type that was asked for. */
  public static final class Unfit extends Exception {
    /** What the text should have been. */
    public final String expected;

    public Unfit(String expected) {
      super(expected, null, false, false);
      this.expected = expected;
    }
  }

  private ValueText() {}

  /** Returns a date as days since 1970. */
  public static int readDate(String text) throws Unfit {
    try {
      return Math.toIntExact(LocalDate.parse(text).toEpochDay());
    } catch (DateTimeException | ArithmeticException e) {
      throw new Unfit("a date such as \"2026-11-15\"");
    }
  }

  /** Returns a time as microseconds since 1970; one without an offset is of UTC. */
  public static long readTimestamp(String text) throws Unfit {
    OffsetDateTime at;
    try {
      TemporalAccessor t = DateTimeFormatter.ISO_DATE_TIME.parseBest(text, OffsetDateTime::from, LocalDateTime::from);
      at = t instanceof OffsetDateTime o ? o : ((LocalDateTime) t).atOffset(ZoneOffset.UTC);
      if (at.getNano() % 1000 == 0)
        return Math.addExact(Math.multiplyExact(at.toEpochSecond(), 1_000_000L), at.get(ChronoField.MICRO_OF_SECOND));
    } catch (DateTimeException | ArithmeticException e) {
      throw new Unfit("a time such as \"2026-11-15T10:05:00Z\"");
    }
    throw new Unfit("a time of whole microseconds");
  }

  public static Decimal readDecimal(String text, DecimalType type) throws Unfit {
    try {
      // A huge exponent would expand to as many digits.
      BigDecimal v = text.length() > 100 ? null : new BigDecimal(text);
      if (v != null && Math.abs((long) v.scale()) <= 1000) {
        v = v.setScale(type.scale());
        if (v.precision() <= type.precision()) return Decimal.apply(v, type.precision(), type.scale());
      }
    } catch (ArithmeticException | NumberFormatException e) {
      // Refused below.
    }
    throw new Unfit("a number that fits " + type.sql());
  }

  public static byte[] readBinary(String text) throws Unfit {
    try {
      return Base64.getDecoder().decode(text);
    } catch (IllegalArgumentException e) {
      throw new Unfit("a base64 string");
    }
  }

  public static String ofDate(int days) {
    return LocalDate.ofEpochDay(days).toString();
  }

  public static String ofTimestamp(long micros) {
    return Instant.ofEpochSecond(Math.floorDiv(micros, 1_000_000L), Math.floorMod(micros, 1_000_000L) * 1000L).toString();
  }

  public static String ofDecimal(Decimal value) {
    return value.toJavaBigDecimal().toPlainString();
  }

  public static String ofBinary(byte[] value) {
    return Base64.getEncoder().encodeToString(value);
  }
}
