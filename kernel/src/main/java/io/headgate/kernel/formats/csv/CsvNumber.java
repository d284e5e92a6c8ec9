package io.headgate.kernel.formats.csv;

import io.headgate.kernel.json.ValueText;

/** Numbers of fields; their texts are those of JSON, and {@code NaN}, {@code Infinity} and {@code -Infinity}. */
final class CsvNumber {
  /** More may not fit into a long. */
  private static final int LONG_DIGITS = 18;

  /** A number of so many is a double without rounding, and so is the power of ten it is divided by. */
  private static final int DOUBLE_DIGITS = 15;
  private static final double[] POWERS = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

  private CsvNumber() {}

  static long integer(CsvFields field, long min, long max, String expected) throws ValueText.Unfit {
    byte[] b = field.bytes;
    int end = field.start + field.length;
    boolean negative = field.length > 0 && b[field.start] == '-';
    int began = field.start + (negative ? 1 : 0);
    int digits = end - began;
    if (digits == 0 || digits > 1 && b[began] == '0') throw new ValueText.Unfit(expected);
    long number = 0;
    for (int i = began; i < end; i++) {
      if (b[i] < '0' || b[i] > '9') throw new ValueText.Unfit(expected);
      if (digits <= LONG_DIGITS) number = number * 10 + (b[i] - '0');
    }
    long value = digits <= LONG_DIGITS ? (negative ? -number : number) : parsed(CsvValue.text(field), expected);
    if (value < min || value > max) throw new ValueText.Unfit(expected);
    return value;
  }

  private static long parsed(String text, String expected) throws ValueText.Unfit {
    try {
      return Long.parseLong(text);
    } catch (NumberFormatException e) {
      throw new ValueText.Unfit(expected);
    }
  }

  static double ofDouble(CsvFields field) throws ValueText.Unfit {
    byte[] b = field.bytes;
    int end = field.start + field.length;
    boolean negative = field.length > 0 && b[field.start] == '-';
    int began = field.start + (negative ? 1 : 0);
    long number = 0;
    int digits = 0;
    int point = -1;
    int at = began;
    for (; at < end && digits <= DOUBLE_DIGITS; at++) {
      if (b[at] >= '0' && b[at] <= '9') {
        number = number * 10 + (b[at] - '0');
        digits++;
      } else if (b[at] == '.' && point < 0) {
        point = at;
      } else {
        break;
      }
    }
    boolean plain = at == end && digits > 0 && digits <= DOUBLE_DIGITS && number != 0 && point != end - 1 && point != began
        && !(b[began] == '0' && digits > 1 && point != began + 1);
    if (!plain) return slow(field);
    double value = number / POWERS[point < 0 ? 0 : end - 1 - point];
    return negative ? -value : value;
  }

  private static double slow(CsvFields field) throws ValueText.Unfit {
    String text = CsvValue.text(field);
    if (isWord(text)) return Double.parseDouble(text);
    double value = isNumber(text) ? Double.parseDouble(text) : Double.NaN;
    if (Double.isNaN(value)) throw new ValueText.Unfit("a number");
    if (Double.isInfinite(value)) throw new ValueText.Unfit("a number a double can hold");
    return value;
  }

  static float ofFloat(CsvFields field) throws ValueText.Unfit {
    String text = CsvValue.text(field);
    if (isWord(text)) return Float.parseFloat(text);
    float value = isNumber(text) ? Float.parseFloat(text) : Float.NaN;
    if (Float.isNaN(value)) throw new ValueText.Unfit("a number");
    if (Float.isInfinite(value)) throw new ValueText.Unfit("a number a float can hold");
    return value;
  }

  private static boolean isWord(String text) {
    return text.equals("NaN") || text.equals("Infinity") || text.equals("-Infinity");
  }

  /** Returns whether a text is a number of JSON. */
  private static boolean isNumber(String text) {
    int at = text.startsWith("-") ? 1 : 0;
    int whole = digits(text, at);
    if (whole == at || whole > at + 1 && text.charAt(at) == '0') return false;
    at = whole;
    if (at < text.length() && text.charAt(at) == '.') {
      int fraction = digits(text, at + 1);
      if (fraction == at + 1) return false;
      at = fraction;
    }
    if (at < text.length() && (text.charAt(at) == 'e' || text.charAt(at) == 'E')) {
      at++;
      if (at < text.length() && (text.charAt(at) == '+' || text.charAt(at) == '-')) at++;
      int exponent = digits(text, at);
      if (exponent == at) return false;
      at = exponent;
    }
    return at == text.length();
  }

  /** Returns where the digits end that begin at a place. */
  private static int digits(String text, int from) {
    int at = from;
    while (at < text.length() && text.charAt(at) >= '0' && text.charAt(at) <= '9') at++;
    return at;
  }
}
