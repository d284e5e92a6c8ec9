package io.headgate.kernel.rows;

/** Where a row comes from and when it happened; mutable, reused from row to row within a task. */
public final class Header {
  public int source;
  public int partition;
  public long offset;
  public long timestamp;
  public long eventTime = Envelope.NO_EVENT_TIME;
  public int lane;
  public long sequence;
  public byte flags;
  /** The place of the row among those made of the same record; 0 for the first. */
  public long ordinal;

  /** Takes the header of an envelope. */
  public void read(byte[] envelope) {
    source = Envelope.source(envelope);
    eventTime = (long) Envelope.LONG.get(envelope, 8);
    partition = (int) Envelope.INT.get(envelope, 16);
    lane = (int) Envelope.INT.get(envelope, 20);
    offset = (long) Envelope.LONG.get(envelope, 24);
    timestamp = (long) Envelope.LONG.get(envelope, 32);
    sequence = (long) Envelope.LONG.get(envelope, 40);
    ordinal = Envelope.ordinal(envelope);
    flags = (byte) (envelope[7] & ~Envelope.HAS_ORDINAL);
  }

  /** Makes an envelope of this header with room for segments of these lengths; the caller fills them in. */
  public byte[] envelope(byte kind, int address, int count, int[] lengths) {
    byte marks = ordinal == 0 ? flags : (byte) (flags | Envelope.HAS_ORDINAL);
    int size = Envelope.body(marks, count);
    for (int i = 0; i < count; i++) size += lengths[i];
    byte[] out = new byte[size];
    out[0] = Envelope.FORMAT;
    out[1] = kind;
    Envelope.SHORT.set(out, 2, (short) address);
    Envelope.SHORT.set(out, 4, (short) source);
    out[6] = (byte) count;
    out[7] = marks;
    Envelope.LONG.set(out, 8, eventTime);
    Envelope.INT.set(out, 16, partition);
    Envelope.INT.set(out, 20, lane);
    Envelope.LONG.set(out, 24, offset);
    Envelope.LONG.set(out, 32, timestamp);
    Envelope.LONG.set(out, 40, sequence);
    int at = Envelope.lengths(marks);
    if (ordinal != 0) Envelope.LONG.set(out, at - 8, ordinal);
    for (int i = 0; i < count; i++) Envelope.INT.set(out, at + 4 * i, lengths[i]);
    return out;
  }

  /** Makes an envelope with one segment. */
  public byte[] envelope(byte kind, int address, byte[] segment, int length) {
    byte[] out = envelope(kind, address, 1, new int[] {length});
    System.arraycopy(segment, 0, out, Envelope.body(out), length);
    return out;
  }

  /** Makes an envelope with two segments. */
  public byte[] envelope(byte kind, int address, byte[] first, byte[] second) {
    byte[] out = envelope(kind, address, 2, new int[] {first.length, second.length});
    int body = Envelope.body(out);
    System.arraycopy(first, 0, out, body, first.length);
    System.arraycopy(second, 0, out, body + first.length, second.length);
    return out;
  }

  /** Makes an envelope with no segment. */
  public byte[] envelope(byte kind, int address) {
    return envelope(kind, address, 0, new int[0]);
  }
}
