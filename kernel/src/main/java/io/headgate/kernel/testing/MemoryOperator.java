package io.headgate.kernel.testing;

import io.headgate.kernel.plan.FlowPlan;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import org.apache.spark.sql.streaming.ExpiredTimerInfo;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.TimerValues;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/** One stateful operator with its state in memory, called as Spark calls it: a batch's rows first, then its timers. */
final class MemoryOperator {
  private record Now(long getCurrentProcessingTimeInMs, long getCurrentWatermarkInMs) implements TimerValues {}

  private record Expired(long getExpiryTimeInMs) implements ExpiredTimerInfo {}

  private final FlowPlan.Operator operator;
  private MemoryHandle handle;

  MemoryOperator(FlowPlan.Operator operator) {
    this.operator = operator;
    open();
  }

  private void open() {
    handle = new MemoryHandle();
    operator.processor().setHandle(handle);
    operator.processor().init(OutputMode.Update(), operator.time());
  }

  /** Returns where state and timers are at present. */
  MemoryHandle handle() {
    return handle;
  }

  /** Begins anew with what state holds, as a query does that takes it over from another. */
  void restart() {
    List<MemoryHandle.Held> held = handle.held();
    open();
    for (MemoryHandle.Held each : held) {
      handle.enter(each.bucket(), 0);
      operator.processor().handleInitialState(each.bucket(), new Tuple2<>(each.bucket(), each.entry()), new Now(0, 0));
    }
  }

  /** @param oneByOne whether each row comes alone, and timers after each, as in real-time mode */
  List<Tuple2<Integer, byte[]>> batch(List<Tuple2<Integer, byte[]>> rows, long watermark, long clock, boolean oneByOne) {
    var now = new Now(clock, watermark);
    var out = new ArrayList<Tuple2<Integer, byte[]>>();
    var groups = new LinkedHashMap<Integer, List<Tuple2<Integer, byte[]>>>();
    for (var row : rows) {
      if (oneByOne) {
        call(row._1(), List.of(row), now, out);
        expire(now, out);
      } else {
        groups.computeIfAbsent(row._1(), k -> new ArrayList<>()).add(row);
      }
    }
    groups.forEach((bucket, group) -> call(bucket, group, now, out));
    expire(now, out);
    return out;
  }

  private void call(Integer bucket, List<Tuple2<Integer, byte[]>> rows, Now now, List<Tuple2<Integer, byte[]>> out) {
    handle.enter(bucket, now.getCurrentWatermarkInMs);
    add(operator.processor().handleInputRows(bucket, CollectionConverters.asScala(rows.iterator()), now), out);
  }

  private void expire(Now now, List<Tuple2<Integer, byte[]>> out) {
    if (!operator.isTimed()) return;
    for (MemoryHandle.Timer timer : handle.expired(now.getCurrentWatermarkInMs)) {
      handle.enter(timer.bucket(), now.getCurrentWatermarkInMs);
      add(operator.processor().handleExpiredTimer(timer.bucket(), now, new Expired(timer.moment())), out);
      handle.deleteTimer(timer.moment());
    }
  }

  private static void add(Iterator<Tuple2<Integer, byte[]>> made, List<Tuple2<Integer, byte[]>> out) {
    while (made.hasNext()) out.add(made.next());
  }
}
