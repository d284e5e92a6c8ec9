package io.headgate.kernel.rows;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.BinaryView;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.TimestampNanosVal;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.unsafe.types.VariantVal;

/**
 * A view of an envelope's segments as one row of a layout; nothing is copied until it is asked for.
 *
 * <p>Mutable and reused from row to row: whatever must outlive the next {@code read} has to be copied.
 */
public final class SegmentedRow extends InternalRow {
  private final UnsafeRow[] segments;
  private final int width;

  public SegmentedRow(Layout layout) {
    segments = new UnsafeRow[layout.segments()];
    for (int i = 0; i < segments.length; i++) segments[i] = new UnsafeRow(layout.width(i));
    width = layout.width(0);
  }

  /** Points at the segments of an envelope that has exactly this layout, this layout's first ones, or a key behind it. */
  public void read(byte[] envelope) {
    read(envelope, Math.min(Envelope.segments(envelope), segments.length));
  }

  /** Points at the first segments of an envelope. */
  public void read(byte[] envelope, int count) {
    int at = Envelope.body(envelope);
    for (int i = 0; i < count; i++) {
      int length = Envelope.length(envelope, i);
      set(i, envelope, at, length);
      at += length;
    }
  }

  /** Points segment i at packed bytes. */
  public void set(int i, byte[] bytes, int start, int length) {
    segments[i].pointTo(bytes, Platform.BYTE_ARRAY_OFFSET + (long) start, length);
  }

  /** Points segment 0 at a row that was packed elsewhere. */
  public void set(UnsafeRow row) {
    set(0, row);
  }

  /** Points segment i at a row that was packed elsewhere. */
  public void set(int i, UnsafeRow row) {
    segments[i].pointTo(row.getBaseObject(), row.getBaseOffset(), row.getSizeInBytes());
  }

  public UnsafeRow segment(int i) {
    return segments[i];
  }

  /** Writes the segments into a new envelope for an address. */
  public byte[] pack(Header header, byte kind, int address) {
    byte[] out = header.envelope(kind, address, segments.length, lengths(segments.length));
    write(out, Envelope.body(out));
    return out;
  }

  /** Does the same, with a key as one more segment behind them. */
  public byte[] pack(Header header, byte kind, int address, byte[] key) {
    int[] lengths = lengths(segments.length + 1);
    lengths[segments.length] = key.length;
    byte[] out = header.envelope(kind, address, lengths.length, lengths);
    System.arraycopy(key, 0, out, write(out, Envelope.body(out)), key.length);
    return out;
  }

  /** Does the same, with a position before the key; null for none. */
  public byte[] pack(Header header, byte kind, int address, byte[] position, byte[] key) {
    if (position == null) return pack(header, kind, address, key);
    int[] lengths = lengths(segments.length + 2);
    lengths[segments.length] = position.length;
    lengths[segments.length + 1] = key.length;
    byte[] out = header.envelope(kind, address, lengths.length, lengths);
    int at = write(out, Envelope.body(out));
    System.arraycopy(position, 0, out, at, position.length);
    System.arraycopy(key, 0, out, at + position.length, key.length);
    return out;
  }

  private int[] lengths(int count) {
    int[] lengths = new int[count];
    for (int i = 0; i < segments.length; i++) lengths[i] = segments[i].getSizeInBytes();
    return lengths;
  }

  private int write(byte[] out, int at) {
    for (UnsafeRow s : segments) {
      int length = s.getSizeInBytes();
      Platform.copyMemory(s.getBaseObject(), s.getBaseOffset(), out, Platform.BYTE_ARRAY_OFFSET + (long) at, length);
      at += length;
    }
    return at;
  }

  // Columns: those of segment 0, then each further segment as a struct.

  @Override public int numFields() { return width + segments.length - 1; }

  @Override public boolean isNullAt(int i) { return i < width && segments[0].isNullAt(i); }

  @Override public InternalRow getStruct(int i, int fields) {
    return i < width ? segments[0].getStruct(i, fields) : segments[i - width + 1];
  }

  @Override public Object get(int i, DataType type) {
    return i < width ? segments[0].get(i, type) : segments[i - width + 1];
  }

  @Override public boolean getBoolean(int i) { return segments[0].getBoolean(i); }
  @Override public byte getByte(int i) { return segments[0].getByte(i); }
  @Override public short getShort(int i) { return segments[0].getShort(i); }
  @Override public int getInt(int i) { return segments[0].getInt(i); }
  @Override public long getLong(int i) { return segments[0].getLong(i); }
  @Override public float getFloat(int i) { return segments[0].getFloat(i); }
  @Override public double getDouble(int i) { return segments[0].getDouble(i); }
  @Override public Decimal getDecimal(int i, int p, int s) { return segments[0].getDecimal(i, p, s); }
  @Override public UTF8String getUTF8String(int i) { return segments[0].getUTF8String(i); }
  @Override public byte[] getBinary(int i) { return segments[0].getBinary(i); }
  @Override public ArrayData getArray(int i) { return segments[0].getArray(i); }
  @Override public MapData getMap(int i) { return segments[0].getMap(i); }

  @Override public BinaryView getBinaryView(int i) { return segments[0].getBinaryView(i); }
  @Override public CalendarInterval getInterval(int i) { return segments[0].getInterval(i); }
  @Override public VariantVal getVariant(int i) { return segments[0].getVariant(i); }
  @Override public TimestampNanosVal getTimestampNTZNanos(int i) { return segments[0].getTimestampNTZNanos(i); }
  @Override public TimestampNanosVal getTimestampLTZNanos(int i) { return segments[0].getTimestampLTZNanos(i); }

  @Override public void setNullAt(int i) { throw new UnsupportedOperationException("a packed row is read only"); }
  @Override public void update(int i, Object v) { throw new UnsupportedOperationException("a packed row is read only"); }
  @Override public InternalRow copy() { throw new UnsupportedOperationException("pack a row to keep it"); }
}
