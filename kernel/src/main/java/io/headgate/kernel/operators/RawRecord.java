package io.headgate.kernel.operators;

import java.io.Serializable;

/** A record as a connector read it; a bean, so that Spark's encoder needs no reflection per row. */
public final class RawRecord implements Serializable {
  private byte[] value;
  private int partition;
  private long offset;
  private long timestamp;
  private int lane;
  private long sequence;
  private long size;

  /** The record's bytes; fewer than {@code size} where the reader cut an oversized one. */
  public byte[] getValue() { return value; }
  public void setValue(byte[] v) { value = v; }

  public int getPartition() { return partition; }
  public void setPartition(int v) { partition = v; }

  public long getOffset() { return offset; }
  public void setOffset(long v) { offset = v; }

  /** When the record was appended, in epoch milliseconds. */
  public long getTimestamp() { return timestamp; }
  public void setTimestamp(long v) { timestamp = v; }

  /** Names an ordered sequence of records: within one lane the sequence decides which change is newer. */
  public int getLane() { return lane; }
  public void setLane(int v) { lane = v; }

  public long getSequence() { return sequence; }
  public void setSequence(long v) { sequence = v; }

  /** The record's full length in bytes. */
  public long getSize() { return size; }
  public void setSize(long v) { size = v; }
}
