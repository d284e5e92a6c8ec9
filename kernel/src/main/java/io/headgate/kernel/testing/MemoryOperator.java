package io.headgate.kernel.testing;

import io.headgate.kernel.plan.FlowPlan;
import java.nio.charset.StandardCharsets;
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

  /** Begins anew with what state holds, as a query does that takes it over from another. */
  void restart() {
    List<MemoryHandle.Held> held = handle.held();
    open();
    for (MemoryHandle.Held each : held) {
      handle.enter(each.key(), 0);
      operator.processor().handleInitialState(bytes(each.key()), new Tuple2<>(bytes(each.key()), each.value()), new Now(0, 0));
    }
  }

  /** @param oneByOne whether each row comes alone, and timers after each, as in real-time mode */
  List<Tuple2<byte[], byte[]>> batch(List<Tuple2<byte[], byte[]>> rows, long watermark, long clock, boolean oneByOne) {
    var now = new Now(clock, watermark);
    var out = new ArrayList<Tuple2<byte[], byte[]>>();
    var groups = new LinkedHashMap<String, List<Tuple2<byte[], byte[]>>>();
    for (var row : rows) {
      String key = new String(row._1(), StandardCharsets.ISO_8859_1);
      if (oneByOne) {
        call(key, List.of(row), now, out);
        expire(now, out);
      } else {
        groups.computeIfAbsent(key, k -> new ArrayList<>()).add(row);
      }
    }
    groups.forEach((key, group) -> call(key, group, now, out));
    expire(now, out);
    return out;
  }

  private void call(String key, List<Tuple2<byte[], byte[]>> rows, Now now, List<Tuple2<byte[], byte[]>> out) {
    handle.enter(key, now.getCurrentWatermarkInMs);
    add(operator.processor().handleInputRows(bytes(key), CollectionConverters.asScala(rows.iterator()), now), out);
  }

  private void expire(Now now, List<Tuple2<byte[], byte[]>> out) {
    if (!operator.isTimed()) return;
    for (MemoryHandle.Timer timer : handle.expired(now.getCurrentWatermarkInMs)) {
      handle.enter(timer.key(), now.getCurrentWatermarkInMs);
      add(operator.processor().handleExpiredTimer(bytes(timer.key()), now, new Expired(timer.moment())), out);
      handle.deleteTimer(timer.moment());
    }
  }

  private static void add(Iterator<Tuple2<byte[], byte[]>> made, List<Tuple2<byte[], byte[]>> out) {
    while (made.hasNext()) out.add(made.next());
  }

  private static byte[] bytes(String key) {
    return key.getBytes(StandardCharsets.ISO_8859_1);
  }
}
