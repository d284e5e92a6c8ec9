package io.headgate.kernel.formats.changes;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.JsonReading;
import io.headgate.kernel.json.JsonReading.Reader;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Base64;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.TimestampType;

/**
 * The forms in which connectors write dates, times and decimals: the record's schema tells which; without one, options do.
 *
 * @param types of the present record
 * @param unit of times that are numbers; null where it is not known
 * @param packed whether a decimal's text is its digits in base64
 */
record ConnectForms(ConnectTypes types, Unit unit, boolean packed) implements JsonReading.Forms {
  private static final long DAY = 86_400_000_000L;

  /** What a number of a time counts. */
  enum Unit {
    MS(1_000, 1), US(1, 1), NS(1, 1_000), DAYS(DAY, 1);

    private final long times;
    private final long by;

    Unit(long times, long by) {
      this.times = times;
      this.by = by;
    }

    /** Returns the microseconds; fails where there is no whole number of them. */
    long micros(long value) {
      if (value % by != 0) throw new ArithmeticException();
      return Math.multiplyExact(value / by, times);
    }

    static Unit of(String type) {
      return switch (type) {
        case "io.debezium.time.Timestamp", "org.apache.kafka.connect.data.Timestamp" -> MS;
        case "io.debezium.time.MicroTimestamp" -> US;
        case "io.debezium.time.NanoTimestamp" -> NS;
        case "io.debezium.time.Date", "org.apache.kafka.connect.data.Date" -> DAYS;
        default -> null;
      };
    }
  }

  @Override public Reader find(DataType type) {
    Reader text = type instanceof DateType || type instanceof TimestampType || type instanceof DecimalType
        ? JsonReading.of(type) : null;
    if (type instanceof DateType) return (p, field) -> date(p, field, text);
    if (type instanceof TimestampType) return (p, field) -> timestamp(p, field, text);
    if (type instanceof DecimalType d) return (p, field) -> decimal(p, field, d, text);
    return null;
  }

  private Object date(JsonParser p, String field, Reader text) throws IOException, BadRecord {
    if (p.currentToken() != JsonToken.VALUE_NUMBER_INT) return text.read(p, field);
    long micros = micros(p, field, unitOf(field, Unit.DAYS));
    if (micros % DAY != 0) throw JsonReading.wrong(p, field, "a date, without a time of day");
    return Math.toIntExact(micros / DAY);
  }

  private Object timestamp(JsonParser p, String field, Reader text) throws IOException, BadRecord {
    if (p.currentToken() != JsonToken.VALUE_NUMBER_INT) return text.read(p, field);
    Unit known = unitOf(field, unit);
    if (known == null)
      throw JsonReading.wrong(p, field,
          "a time whose unit is known (the record has no schema: set Debezium(timestamps=\"us\"), \"ms\" or \"ns\")");
    return micros(p, field, known);
  }

  private Unit unitOf(String field, Unit otherwise) {
    ConnectTypes.Named named = types.find(field);
    Unit known = named == null ? null : Unit.of(named.name());
    return known == null ? otherwise : known;
  }

  private static long micros(JsonParser p, String field, Unit unit) throws IOException, BadRecord {
    try {
      if (p.getNumberType() != JsonParser.NumberType.BIG_INTEGER) return unit.micros(p.getLongValue());
    } catch (ArithmeticException e) {
      // Told below.
    }
    throw JsonReading.wrong(p, field, "a time of whole microseconds");
  }

  private Object decimal(JsonParser p, String field, DecimalType type, Reader text) throws IOException, BadRecord {
    if (p.currentToken() == JsonToken.START_OBJECT) return scaled(p, field, type);
    if (p.currentToken() != JsonToken.VALUE_STRING) return text.read(p, field);
    ConnectTypes.Named named = types.find(field);
    if (named != null && named.name().equals("org.apache.kafka.connect.data.Decimal"))
      return unpacked(p, field, p.getText(), named.scale(), type);
    return packed ? unpacked(p, field, p.getText(), type.scale(), type) : text.read(p, field);
  }

  /** Reads a decimal that says its scale itself. */
  private static Object scaled(JsonParser p, String field, DecimalType type) throws IOException, BadRecord {
    Integer scale = null;
    String value = null;
    while (p.nextToken() != JsonToken.END_OBJECT) {
      String name = p.currentName();
      JsonToken token = p.nextToken();
      if (name.equals("scale") && token == JsonToken.VALUE_NUMBER_INT) scale = p.getIntValue();
      else if (name.equals("value") && token == JsonToken.VALUE_STRING) value = p.getText();
      else p.skipChildren();
    }
    if (scale == null || value == null) throw JsonReading.wrong(p, field, "a scale and a value in base64");
    return unpacked(p, field, value, scale, type);
  }

  private static Object unpacked(JsonParser p, String field, String digits, int scale, DecimalType type)
      throws IOException, BadRecord {
    try {
      BigDecimal v = new BigDecimal(new BigInteger(Base64.getDecoder().decode(digits)), scale);
      if (Math.abs((long) scale) <= 1000) v = v.setScale(type.scale());
      if (v.scale() == type.scale() && v.precision() <= type.precision()) return Decimal.apply(v, type.precision(), type.scale());
    } catch (ArithmeticException | IllegalArgumentException e) {
      // Told below.
    }
    throw JsonReading.wrong(p, field, "a decimal in base64 that fits " + type.sql());
  }
}
