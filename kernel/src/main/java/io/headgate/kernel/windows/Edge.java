package io.headgate.kernel.windows;

import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.SegmentedRow;
import org.apache.spark.sql.catalyst.InternalRow;

/** The value of the earliest or the latest event: by event time, then by where it stands in its source. */
final class Edge implements Accumulator {
  private final Column column;
  private final boolean latest;
  private final Value value;
  private boolean any;
  private long time;
  private int source;
  private int partition;
  private long offset;
  private long sequence;

  Edge(Column column, boolean latest) {
    this.column = column;
    this.latest = latest;
    value = Value.of(column.type());
  }

  @Override public void clear() {
    any = false;
  }

  @Override public void add(SegmentedRow row, byte[] envelope) {
    InternalRow at = column.holder(row);
    if (at == null) return;
    boolean taken = place(Envelope.eventTime(envelope), Envelope.source(envelope), Envelope.partition(envelope),
        Envelope.offset(envelope), Envelope.sequence(envelope));
    if (taken) value.take(at, column.ordinal());
  }

  /** Moves to the place of an event where that is further out, and returns whether it is. */
  private boolean place(long t, int s, int p, long o, long q) {
    if (any) {
      int by = Long.compare(t, time);
      if (by == 0) by = Integer.compare(s, source);
      if (by == 0) by = Integer.compare(p, partition);
      if (by == 0) by = Long.compare(o, offset);
      if (by == 0) by = Long.compare(q, sequence);
      if (latest ? by < 0 : by >= 0) return false;
    }
    any = true;
    time = t;
    source = s;
    partition = p;
    offset = o;
    sequence = q;
    return true;
  }

  @Override public void merge(Accumulator other) {
    var edge = (Edge) other;
    if (edge.any && place(edge.time, edge.source, edge.partition, edge.offset, edge.sequence)) value.set(edge.value.get());
  }

  @Override public void write(StateWriter out) {
    out.putByte(any ? 1 : 0);
    if (!any) return;
    out.putLong(time);
    out.putInt(source);
    out.putInt(partition);
    out.putLong(offset);
    out.putLong(sequence);
    value.write(out);
  }

  @Override public void read(StateReader in) {
    any = in.getByte() != 0;
    if (!any) return;
    time = in.getLong();
    source = in.getInt();
    partition = in.getInt();
    offset = in.getLong();
    sequence = in.getLong();
    value.read(in);
  }

  @Override public Object result() {
    return any ? value.get() : null;
  }
}
