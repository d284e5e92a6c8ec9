package io.headgate.kernel.json;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.sql.types.*;

/**
 * Decodes records of the form that producers mostly write: the schema's fields and no others, in its order; numbers of few
 * digits, text without escapes.
 *
 * <p>What it takes comes out as {@link JsonReading} has it. Everything else it leaves to that: what is rare, and
 * whatever may be wrong. One serves one thread.
 */
final class PlainDecoder {
  private enum Kind { BYTE, SHORT, INT, LONG, DOUBLE, BOOLEAN, TEXT }

  /** More may not fit into a long. */
  private static final int LONG_DIGITS = 18;

  /** A number of so many is a double without rounding, and so is the power of ten it is divided by. */
  private static final int DOUBLE_DIGITS = 15;
  private static final double[] POWERS = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  private static final byte[] NULL = {'n', 'u', 'l', 'l'};
  private static final byte[] TRUE = {'t', 'r', 'u', 'e'};
  private static final byte[] FALSE = {'f', 'a', 'l', 's', 'e'};

  /** In quotes, with the colon. */
  private final byte[][] names;
  private final Kind[] kinds;
  private final boolean[] nullable;
  private final UnsafeRowWriter row;

  private byte[] from;
  private int at;
  private int end;
  /** The digits of the number at hand, without its sign and point, and how many they are. */
  private long number;
  private int digits;

  private PlainDecoder(StructType schema, Kind[] kinds) {
    this.kinds = kinds;
    names = new byte[kinds.length][];
    nullable = new boolean[kinds.length];
    for (int i = 0; i < kinds.length; i++) {
      names[i] = JsonText.name(schema.fields()[i].name());
      nullable[i] = schema.fields()[i].nullable();
    }
    row = new UnsafeRowWriter(kinds.length);
  }

  /** Returns a decoder for a schema, or null where it has a column of a type that is never plain. */
  static PlainDecoder find(StructType schema) {
    var kinds = new Kind[schema.length()];
    for (int i = 0; i < kinds.length; i++) {
      kinds[i] = kind(schema.fields()[i].dataType());
      if (kinds[i] == null) return null;
    }
    return new PlainDecoder(schema, kinds);
  }

  private static Kind kind(DataType type) {
    if (type instanceof LongType) return Kind.LONG;
    if (type instanceof IntegerType) return Kind.INT;
    if (type instanceof ShortType) return Kind.SHORT;
    if (type instanceof ByteType) return Kind.BYTE;
    if (type instanceof DoubleType) return Kind.DOUBLE;
    if (type instanceof BooleanType) return Kind.BOOLEAN;
    return type instanceof StringType ? Kind.TEXT : null;
  }

  /** Returns the row, which the next call overwrites, or null for a record of another form. */
  UnsafeRow decode(byte[] record, int start, int length) {
    from = record;
    at = start;
    end = start + length;
    row.reset();
    row.zeroOutNullBytes();
    if (!take('{')) return null;
    for (int i = 0; i < names.length; i++) {
      if (i > 0 && !take(',')) return null;
      if (!name(names[i]) || !value(i)) return null;
    }
    if (!take('}')) return null;
    pass();
    return at == end ? row.getRow() : null;
  }

  /** Passes over blanks. */
  private void pass() {
    while (at < end && (from[at] == ' ' || from[at] == '\n' || from[at] == '\r' || from[at] == '\t')) at++;
  }

  private boolean take(char c) {
    pass();
    if (at == end || from[at] != c) return false;
    at++;
    return true;
  }

  private boolean word(byte[] word) {
    if (end - at < word.length || !Arrays.equals(from, at, at + word.length, word, 0, word.length)) return false;
    at += word.length;
    return true;
  }

  private boolean name(byte[] name) {
    pass();
    if (word(name)) return true;
    int quoted = name.length - 1;
    // There may be blanks before the colon.
    if (end - at < quoted || !Arrays.equals(from, at, at + quoted, name, 0, quoted)) return false;
    at += quoted;
    return take(':');
  }

  private boolean value(int i) {
    pass();
    if (at == end) return false;
    if (from[at] == 'n') {
      row.setNullAt(i);
      return nullable[i] && word(NULL);
    }
    return switch (kinds[i]) {
      case TEXT -> text(i);
      case DOUBLE -> decimal(i);
      case BOOLEAN -> bool(i);
      default -> integer(i);
    };
  }

  private boolean bool(int i) {
    boolean yes = from[at] == 't';
    row.write(i, yes);
    return word(yes ? TRUE : FALSE);
  }

  private boolean integer(int i) {
    boolean negative = sign();
    int began = at;
    digits();
    // The rule against leading zeros.
    if (digits == 0 || digits > LONG_DIGITS || digits > 1 && from[began] == '0') return false;
    long value = negative ? -number : number;
    switch (kinds[i]) {
      case BYTE -> {
        row.write(i, (byte) value);
        return value == (byte) value;
      }
      case SHORT -> {
        row.write(i, (short) value);
        return value == (short) value;
      }
      case INT -> {
        row.write(i, (int) value);
        return value == (int) value;
      }
      default -> {
        row.write(i, value);
        return true;
      }
    }
  }

  private boolean decimal(int i) {
    boolean negative = sign();
    int began = at;
    digits();
    int whole = digits;
    if (whole == 0 || whole > 1 && from[began] == '0') return false;
    if (at < end && from[at] == '.') {
      at++;
      digits();
      if (digits == whole) return false;
    }
    // A zero may have a sign, and its form decides.
    if (digits > DOUBLE_DIGITS || negative && number == 0) return false;
    double value = number / POWERS[digits - whole];
    row.write(i, negative ? -value : value);
    return true;
  }

  /** Begins a number; returns whether it is negative. */
  private boolean sign() {
    number = 0;
    digits = 0;
    if (from[at] != '-') return false;
    at++;
    return true;
  }

  /** Reads digits behind those that were read, and stops where there are too many for a long. */
  private void digits() {
    while (at < end && from[at] >= '0' && from[at] <= '9' && digits <= LONG_DIGITS) {
      number = number * 10 + (from[at++] - '0');
      digits++;
    }
  }

  private boolean text(int i) {
    if (from[at] != '"') return false;
    int began = at + 1;
    boolean ascii = true;
    for (int to = began; to < end; to++) {
      byte c = from[to];
      if (c == '"') {
        at = to + 1;
        if (!ascii && !isUtf8(began, to - began)) return false;
        row.write(i, from, began, to - began);
        return true;
      }
      if (c == '\\' || c >= 0 && c < ' ') return false;
      ascii &= c >= 0;
    }
    return false;
  }

  private boolean isUtf8(int start, int length) {
    try {
      Utf8.checkJson(from, start, length);
      return true;
    } catch (BadRecord e) {
      return false;
    }
  }
}
