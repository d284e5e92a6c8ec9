package io.headgate.kernel.sink;

import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.Utf8;
import java.nio.charset.StandardCharsets;

/** Records as a terminal shows them. */
final class ShownText {
  private ShownText() {}

  /** Returns a record that is text as it is; of any other, each byte beyond ASCII as {@code \\xff}. */
  static String of(byte[] record) {
    try {
      Utf8.check(record, 0, record.length);
      return new String(record, StandardCharsets.UTF_8);
    } catch (BadRecord e) {
      var out = new StringBuilder();
      for (byte b : record) out.append(b >= 0 ? Character.toString((char) b) : String.format("\\x%02x", b & 0xff));
      return out.toString();
    }
  }
}
