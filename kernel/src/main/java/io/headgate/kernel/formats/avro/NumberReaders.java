package io.headgate.kernel.formats.avro;

import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import org.apache.avro.Schema;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.sql.types.*;

/** Readers of numbers, booleans, dates and times. */
final class NumberReaders {
  private NumberReaders() {}

  /** Returns the reader of a column, or null for a type that is neither the same nor promoted. */
  static ValueReader find(Schema written, DataType type, String field) {
    Schema.Type from = written.getType();
    if (type instanceof LongType)
      return from == Schema.Type.LONG || from == Schema.Type.INT ? (Longs) AvroInput::readLong : null;
    if (type instanceof IntegerType) return from == Schema.Type.INT ? (Ints) AvroInput::readInt : null;
    if (type instanceof ShortType) return from == Schema.Type.INT ? (Shorts) in -> narrow(in, field, 16) : null;
    if (type instanceof ByteType) return from == Schema.Type.INT ? (Bytes) in -> narrow(in, field, 8) : null;
    if (type instanceof BooleanType) return from == Schema.Type.BOOLEAN ? (Booleans) AvroInput::readBoolean : null;
    if (type instanceof DoubleType) return doubles(from);
    if (type instanceof FloatType) return floats(from);
    String logical = AvroTypes.logical(written);
    if (type instanceof DateType) return from == Schema.Type.INT && logical.equals("date") ? (Ints) AvroInput::readInt : null;
    if (type instanceof TimestampType && from == Schema.Type.LONG) return times(logical, field);
    return null;
  }

  private static ValueReader doubles(Schema.Type from) {
    return switch (from) {
      case INT, LONG -> (Doubles) AvroInput::readLong;
      case FLOAT -> (Doubles) AvroInput::readFloat;
      case DOUBLE -> (Doubles) AvroInput::readDouble;
      default -> null;
    };
  }

  private static ValueReader floats(Schema.Type from) {
    return switch (from) {
      case INT, LONG -> (Floats) AvroInput::readLong;
      case FLOAT -> (Floats) AvroInput::readFloat;
      default -> null;
    };
  }

  /** Returns the reader of a time as microseconds; a local time is one of UTC. */
  private static ValueReader times(String logical, String field) {
    return switch (logical) {
      case "timestamp-micros", "local-timestamp-micros" -> (Longs) AvroInput::readLong;
      case "timestamp-millis", "local-timestamp-millis" -> (Longs) in -> {
        long millis = in.readLong();
        long micros = millis * 1000;
        if (micros / 1000 != millis) throw wrong(field, "a time that microseconds can hold", millis + " ms");
        return micros;
      };
      case "timestamp-nanos", "local-timestamp-nanos" -> (Longs) in -> {
        long nanos = in.readLong();
        if (nanos % 1000 != 0) throw wrong(field, "a time of whole microseconds", nanos + " ns");
        return nanos / 1000;
      };
      default -> null;
    };
  }

  private static int narrow(AvroInput in, String field, int bits) throws BadRecord {
    int value = in.readInt();
    if (value != value << (32 - bits) >> (32 - bits)) throw wrong(field, "an integer of " + bits + " bits", String.valueOf(value));
    return value;
  }

  static BadRecord wrong(String field, String expected, String found) {
    return new BadRecord(Reason.WRONG_TYPE, "field '" + field + "': expected " + expected + ", found " + found);
  }

  private interface Longs extends ValueReader {
    long value(AvroInput in) throws BadRecord;

    @Override default Object read(AvroInput in) throws BadRecord {
      return value(in);
    }

    @Override default void read(AvroInput in, UnsafeRowWriter row, int i) throws BadRecord {
      row.write(i, value(in));
    }
  }

  private interface Ints extends ValueReader {
    int value(AvroInput in) throws BadRecord;

    @Override default Object read(AvroInput in) throws BadRecord {
      return value(in);
    }

    @Override default void read(AvroInput in, UnsafeRowWriter row, int i) throws BadRecord {
      row.write(i, value(in));
    }
  }

  private interface Shorts extends ValueReader {
    int value(AvroInput in) throws BadRecord;

    @Override default Object read(AvroInput in) throws BadRecord {
      return (short) value(in);
    }

    @Override default void read(AvroInput in, UnsafeRowWriter row, int i) throws BadRecord {
      row.write(i, (short) value(in));
    }
  }

  private interface Bytes extends ValueReader {
    int value(AvroInput in) throws BadRecord;

    @Override default Object read(AvroInput in) throws BadRecord {
      return (byte) value(in);
    }

    @Override default void read(AvroInput in, UnsafeRowWriter row, int i) throws BadRecord {
      row.write(i, (byte) value(in));
    }
  }

  private interface Booleans extends ValueReader {
    boolean value(AvroInput in) throws BadRecord;

    @Override default Object read(AvroInput in) throws BadRecord {
      return value(in);
    }

    @Override default void read(AvroInput in, UnsafeRowWriter row, int i) throws BadRecord {
      row.write(i, value(in));
    }
  }

  private interface Doubles extends ValueReader {
    double value(AvroInput in) throws BadRecord;

    @Override default Object read(AvroInput in) throws BadRecord {
      return value(in);
    }

    @Override default void read(AvroInput in, UnsafeRowWriter row, int i) throws BadRecord {
      row.write(i, value(in));
    }
  }

  private interface Floats extends ValueReader {
    float value(AvroInput in) throws BadRecord;

    @Override default Object read(AvroInput in) throws BadRecord {
      return value(in);
    }

    @Override default void read(AvroInput in, UnsafeRowWriter row, int i) throws BadRecord {
      row.write(i, value(in));
    }
  }
}
