package io.headgate.kernel.json;

import com.fasterxml.jackson.core.io.NumberOutput;
import java.util.Arrays;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** JSON, or another text, while it is written: bytes that grow, and the forms of simple values. One serves one thread. */
public final class JsonText {
  /** Digits of the longest number, with its sign. */
  private static final int LONGEST = 20;
  private static final byte[] HEX = {'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'};
  private static final String SHORT = "\b\t\n\f\r\"\\";
  private static final String SHORT_AS = "btnfr\"\\";

  /** The last and the last but one digit of numbers below 100. */
  private static final byte[] ONES = new byte[100];
  private static final byte[] TENS = new byte[100];

  static {
    for (int i = 0; i < 100; i++) {
      ONES[i] = (byte) ('0' + i % 10);
      TENS[i] = (byte) ('0' + i / 10);
    }
  }

  private final byte[] digits = new byte[LONGEST];
  private byte[] bytes;
  private int size;

  public JsonText(int room) {
    bytes = new byte[room];
  }

  /** Returns the name of a field as it stands in an object, with the colon. */
  static byte[] name(String name) {
    var out = new JsonText(name.length() + 8);
    out.text(UTF8String.fromString(name));
    out.add(':');
    return out.toBytes();
  }

  public void clear() {
    size = 0;
  }

  public byte[] toBytes() {
    return Arrays.copyOf(bytes, size);
  }

  private void room(int more) {
    if (bytes.length - size < more) bytes = Arrays.copyOf(bytes, Math.max(bytes.length * 2, size + more));
  }

  public void add(char ascii) {
    room(1);
    bytes[size++] = (byte) ascii;
  }

  public void add(byte[] json) {
    add(json, 0, json.length);
  }

  public void add(byte[] from, int start, int length) {
    room(length);
    System.arraycopy(from, start, bytes, size, length);
    size += length;
  }

  void addNull() {
    ascii("null");
  }

  public void bool(boolean value) {
    ascii(value ? "true" : "false");
  }

  /** Adds text that has no character beyond ASCII and none that JSON escapes. */
  @SuppressWarnings("deprecation")
  public void ascii(String text) {
    room(text.length());
    text.getBytes(0, text.length(), bytes, size);
    size += text.length();
  }

  void quoted(String ascii) {
    add('"');
    ascii(ascii);
    add('"');
  }

  public void number(long value) {
    room(LONGEST);
    // The least number has no positive one, so digits are taken from the negative; two at a time, since dividing is slow.
    long left = value < 0 ? value : -value;
    int at = LONGEST;
    while (left <= -100) {
      int pair = (int) -(left % 100);
      left /= 100;
      digits[--at] = ONES[pair];
      digits[--at] = TENS[pair];
    }
    digits[--at] = ONES[(int) -left];
    if (left <= -10) digits[--at] = TENS[(int) -left];
    if (value < 0) digits[--at] = '-';
    System.arraycopy(digits, at, bytes, size, LONGEST - at);
    size += LONGEST - at;
  }

  /** Adds a number in the fewest digits that mean it; what is no number, in quotes. */
  public void number(double value) {
    double amount = Math.abs(value);
    if (amount >= 0.01 && amount < 1e7) {
      // Two decimals, as prices have, that mean it are the fewest: no two numbers of 15 digits are the same double.
      long cents = Math.round(amount * 100);
      if (cents / 100.0 == amount) {
        hundredths(value < 0, cents);
        return;
      }
    }
    if (Double.isFinite(value)) ascii(NumberOutput.toString(value, true));
    else quoted(Double.toString(value));
  }

  private void hundredths(boolean negative, long cents) {
    if (negative) add('-');
    number(cents / 100);
    add('.');
    long rest = cents % 100;
    add((char) ('0' + rest / 10));
    if (rest % 10 != 0) add((char) ('0' + rest % 10));
  }

  public void number(float value) {
    if (Float.isFinite(value)) ascii(NumberOutput.toString(value, true));
    else quoted(Float.toString(value));
  }

  void text(UTF8String text) {
    int length = text.numBytes();
    room(length + 2);
    int from = size + 1;
    text.writeToMemory(bytes, Platform.BYTE_ARRAY_OFFSET + from);
    for (int i = from; i < from + length; i++) {
      if (isEscaped(bytes[i])) {
        escape(text.getBytes());
        return;
      }
    }
    bytes[size] = '"';
    bytes[from + length] = '"';
    size = from + length + 1;
  }

  private static boolean isEscaped(byte c) {
    return c >= 0 && c < 0x20 || c == '"' || c == '\\';
  }

  private void escape(byte[] text) {
    room(6 * text.length + 2);
    bytes[size++] = '"';
    for (byte c : text) {
      if (!isEscaped(c)) {
        bytes[size++] = c;
        continue;
      }
      bytes[size++] = '\\';
      int known = SHORT.indexOf(c);
      if (known >= 0) {
        bytes[size++] = (byte) SHORT_AS.charAt(known);
      } else {
        ascii("u00");
        bytes[size++] = HEX[c >> 4];
        bytes[size++] = HEX[c & 0xf];
      }
    }
    bytes[size++] = '"';
  }
}
