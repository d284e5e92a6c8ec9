package io.headgate.kernel.formats.avro;

import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import io.headgate.kernel.json.Utf8;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** Reads Avro's binary encoding from a range of bytes; whatever is not as it must be is a {@link BadRecord}. */
public final class AvroInput {
  private static final VarHandle LONGS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

  /** An element may have no bytes, as a null has, so a few bytes could stand for any number of them. */
  private static final long FREE_ELEMENTS = 1 << 16;

  /** Deeper values of a recursive schema would exhaust the stack. */
  private static final int DEEPEST = 200;

  private byte[] from;
  private int start;
  private int at;
  private int end;
  private long elements;
  private int depth;

  public void set(byte[] from, int start, int length) {
    this.from = from;
    this.start = start;
    at = start;
    end = start + length;
    elements = length + FREE_ELEMENTS;
    depth = 0;
  }

  /** The place of the next byte. */
  int place() {
    return at;
  }

  /** The bytes that values are read from. */
  byte[] bytes() {
    return from;
  }

  int position() {
    return at;
  }

  BadRecord bad(String problem) {
    return new BadRecord(Reason.BAD_AVRO, problem + " at byte " + (at - start));
  }

  private BadRecord cut() {
    return new BadRecord(Reason.BAD_AVRO, "the record ends within a value, after " + (end - start) + " bytes");
  }

  /** Refuses bytes behind the value. */
  void finish() throws BadRecord {
    if (at != end)
      throw new BadRecord(Reason.BAD_AVRO, (end - at) + " bytes follow the value, which ends at byte " + (at - start));
  }

  boolean readBoolean() throws BadRecord {
    if (at == end) throw cut();
    byte b = from[at];
    if (b != 0 && b != 1) throw bad("a boolean is " + (b & 0xff));
    at++;
    return b == 1;
  }

  int readInt() throws BadRecord {
    long value = readLong();
    if (value != (int) value) throw bad("an int has more than 32 bits");
    return (int) value;
  }

  long readLong() throws BadRecord {
    if (at == end) throw cut();
    int first = from[at++];
    if (first >= 0) return (first >>> 1) ^ -(first & 1);
    long n = first & 0x7f;
    for (int shift = 7; shift < 64; shift += 7) {
      if (at == end) throw cut();
      int b = from[at++];
      if (shift == 63 && (b & 0x7e) != 0) throw bad("an integer has more than 64 bits");
      n |= (long) (b & 0x7f) << shift;
      if (b >= 0) return (n >>> 1) ^ -(n & 1);
    }
    throw bad("an integer has more than 64 bits");
  }

  float readFloat() throws BadRecord {
    return Float.intBitsToFloat((int) INTS.get(from, take(4)));
  }

  double readDouble() throws BadRecord {
    return Double.longBitsToDouble((long) LONGS.get(from, take(8)));
  }

  /** Returns where so many bytes begin, and passes over them. */
  int take(int length) throws BadRecord {
    if (end - at < length) throw cut();
    int begin = at;
    at += length;
    return begin;
  }

  /** Returns how many bytes follow, as is written before text and bytes. */
  int readLength() throws BadRecord {
    long length = readLong();
    if (length < 0) throw bad("a length is negative");
    if (length > end - at) throw cut();
    return (int) length;
  }

  /** Refuses a range that is not UTF-8. */
  void checkText(int begin, int length, String field) throws BadRecord {
    try {
      Utf8.check(from, begin, length);
    } catch (BadRecord e) {
      throw new BadRecord(e.reason, "field '" + field + "': " + e.getMessage() + " of its text");
    }
  }

  /** Returns the index of a branch or symbol, of which there are so many. */
  int readIndex(int count, String what) throws BadRecord {
    int index = readInt();
    if (index < 0 || index >= count) throw bad(what + " " + index + " does not exist");
    return index;
  }

  void enter() throws BadRecord {
    if (++depth > DEEPEST) throw bad("values are nested in more than " + DEEPEST + " levels");
  }

  void leave() {
    depth--;
  }

  /** Reads or passes over the elements of an array or map. */
  interface Element {
    void take(AvroInput in) throws BadRecord;
  }

  /** Takes the elements of all blocks. */
  void blocks(Element element) throws BadRecord {
    enter();
    for (long count = readLong(); count != 0; count = readLong()) {
      int size = -1;
      if (count < 0) {
        size = readLength();
        count = -count;
      }
      // The negation of the least number is negative.
      if (count < 0 || count > elements) throw bad("a block has more elements than bytes");
      elements -= count;
      int begin = at;
      for (long i = 0; i < count; i++) element.take(this);
      if (size >= 0 && at - begin != size) throw bad("a block has " + (at - begin) + " bytes, and is written to have " + size);
    }
    leave();
  }
}
