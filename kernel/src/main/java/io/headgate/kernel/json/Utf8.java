package io.headgate.kernel.json;

import io.headgate.kernel.json.BadRecord.Reason;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** Checks that bytes are UTF-8. */
public final class Utf8 {
  private static final VarHandle EIGHT = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final long NOT_ASCII = 0x8080808080808080L;

  private Utf8() {}

  /** Refuses bytes that are not UTF-8; a zero byte is a character. */
  public static void check(byte[] b, int start, int length) throws BadRecord {
    int n = start + length;
    int i = start;
    while (n - i >= Long.BYTES && ((long) EIGHT.get(b, i) & NOT_ASCII) == 0) i += Long.BYTES;
    check(b, start, i, n, true);
  }

  /** Does so before a parser of JSON would guess another encoding: none of its characters is a zero byte. */
  public static void checkJson(byte[] b, int start, int length) throws BadRecord {
    check(b, start, start, start + length, false);
  }

  private static void check(byte[] b, int start, int from, int n, boolean zeros) throws BadRecord {
    int i = from;
    while (i < n) {
      int c = b[i];
      if (c > 0 || zeros && c == 0) {
        i++;
        continue;
      }
      int more;
      if (c == 0) throw new BadRecord(Reason.BAD_JSON, "a zero byte at byte " + (i - start));
      int lead = c & 0xff;
      if (lead >= 0xc2 && lead <= 0xdf) more = 1;
      else if ((lead & 0xf0) == 0xe0) more = 2;
      else if (lead >= 0xf0 && lead <= 0xf4) more = 3;
      else throw notUtf8(i - start);
      if (i + more >= n) throw notUtf8(i - start);
      int second = b[i + 1] & 0xff;
      boolean bad = (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f)
          || (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f);
      for (int k = 1; k <= more; k++) bad |= (b[i + k] & 0xc0) != 0x80;
      if (bad) throw notUtf8(i - start);
      i += 1 + more;
    }
  }

  private static BadRecord notUtf8(int at) {
    return new BadRecord(Reason.NOT_UTF8, "not UTF-8 at byte " + at);
  }
}
