package io.headgate.kernel.plan;

import io.headgate.kernel.rows.Bucket;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.Header;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.io.Serializable;
import java.util.ArrayDeque;
import java.util.Iterator;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import scala.Tuple2;

/**
 * Sends rows that were spread over tasks on their way, and passes all others on.
 *
 * <p>The task of a row depends on the position of its record alone: in a replay, each task has the same rows.
 */
public final class Rebalance implements MapPartitionsFunction<Tuple2<Integer, byte[]>, Tuple2<Integer, byte[]>> {
  private final int address;
  private final Layout layout;
  private final Route route;
  private final Placement placement;

  Rebalance(int address, Layout layout, Route route, Placement placement) {
    this.address = address;
    this.layout = layout;
    this.route = route;
    this.placement = placement;
  }

  /** Addresses rows to a rebalance, each with a bucket of its own. */
  record Spread(int address) implements Route.Step, Serializable {
    @Override public void take(SegmentedRow row, Header header, Integer spread, Route.Out out) {
      out.add(new Tuple2<>(Bucket.anywhere(header), row.pack(header, Envelope.EVENT, address)));
    }
  }

  @Override public Iterator<Tuple2<Integer, byte[]>> call(Iterator<Tuple2<Integer, byte[]>> rows) {
    return new Rows(rows);
  }

  private final class Rows implements Iterator<Tuple2<Integer, byte[]>> {
    private final Iterator<Tuple2<Integer, byte[]>> rows;
    private final ArrayDeque<Tuple2<Integer, byte[]>> ready = new ArrayDeque<>();
    private final SegmentedRow row = new SegmentedRow(layout);
    private final Header header = new Header();
    private final boolean present = placement.isPresentInTask();

    Rows(Iterator<Tuple2<Integer, byte[]>> rows) {
      this.rows = rows;
    }

    @Override public boolean hasNext() {
      while (ready.isEmpty() && rows.hasNext()) take(rows.next());
      return !ready.isEmpty();
    }

    @Override public Tuple2<Integer, byte[]> next() {
      return ready.removeFirst();
    }

    private void take(Tuple2<Integer, byte[]> next) {
      if (!Envelope.isFor(next._2(), address)) {
        ready.add(next);
        return;
      }
      row.read(next._2());
      header.read(next._2());
      route.send(row, header, Placement.spread(present, header), ready::add);
    }
  }
}
