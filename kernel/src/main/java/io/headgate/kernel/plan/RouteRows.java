package io.headgate.kernel.plan;

import io.headgate.kernel.rows.Header;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.util.ArrayDeque;
import java.util.Iterator;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.types.StructType;
import scala.Tuple2;

/** Sends packed rows on their way under the header of the envelopes they came from: pairs of envelope and packed row. */
final class RouteRows implements MapPartitionsFunction<Tuple2<byte[], byte[]>, Tuple2<Integer, byte[]>> {
  private final Layout layout;
  private final Route route;
  private final Placement placement;

  RouteRows(Layout layout, Route route, Placement placement) {
    this.layout = layout;
    this.route = route;
    this.placement = placement;
  }

  StructType schema() {
    return layout.schema();
  }

  @Override public Iterator<Tuple2<Integer, byte[]>> call(Iterator<Tuple2<byte[], byte[]>> rows) {
    var ready = new ArrayDeque<Tuple2<Integer, byte[]>>();
    var header = new Header();
    var row = new SegmentedRow(layout);
    boolean present = placement.isPresentInTask();
    return new Iterator<>() {
      @Override public boolean hasNext() {
        while (ready.isEmpty() && rows.hasNext()) {
          Tuple2<byte[], byte[]> next = rows.next();
          header.read(next._1());
          row.set(0, next._2(), 0, next._2().length);
          route.send(row, header, Placement.spread(present, header), ready::add);
        }
        return !ready.isEmpty();
      }

      @Override public Tuple2<Integer, byte[]> next() {
        return ready.removeFirst();
      }
    };
  }
}
