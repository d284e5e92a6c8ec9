package io.headgate.kernel.testing;

import io.headgate.kernel.broadcast.ControlBuckets;
import io.headgate.kernel.joins.JoinProcessor;
import io.headgate.kernel.plan.FlowPlan;
import io.headgate.kernel.process.ProcessProcessor;
import io.headgate.kernel.process.ProcessSpec;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.Header;
import io.headgate.kernel.rows.HeldEntry;
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

  private static final String ALARMS = ProcessProcessor.VARIABLES.get(2);

  private final FlowPlan.Operator operator;
  private MemoryHandle handle;

  MemoryOperator(FlowPlan.Operator operator) {
    this.operator = operator;
    open();
  }

  private void open() {
    open(new MemoryHandle());
  }

  /** Has the operator begin anew with state and timers as they were. */
  void open(MemoryHandle from) {
    handle = from;
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
    begin(held);
  }

  /** Takes over what another operator held. */
  void begin(List<MemoryHandle.Held> held) {
    for (MemoryHandle.Held each : held) {
      handle.enter(each.bucket(), 0);
      operator.processor().handleInitialState(each.bucket(), new Tuple2<>(each.bucket(), entry(each)), new Now(0, 0));
    }
  }

  /** Returns an entry in the form in which another query takes it over. */
  private byte[] entry(MemoryHandle.Held held) {
    boolean join = operator.processor() instanceof JoinProcessor;
    if (process() == null && !join) return HeldEntry.pack(held.key(), held.value());
    byte[] key = new byte[1 + held.key().length];
    key[0] = (byte) (join ? JoinProcessor.VARIABLES : ProcessProcessor.VARIABLES).indexOf(held.map());
    System.arraycopy(held.key(), 0, key, 1, held.key().length);
    return HeldEntry.pack(key, held.value());
  }

  /** Returns what a process function is; null for another operator. */
  private ProcessSpec process() {
    return operator.processor() instanceof ProcessProcessor process ? process.spec() : null;
  }

  /** Returns when the earliest timer by the clock is due; Long.MAX_VALUE without one. */
  long nextAlarm() {
    return handle.held().stream().filter(held -> held.map().equals(ALARMS))
        .mapToLong(held -> ProcessProcessor.timeOf(held.key())).min().orElse(Long.MAX_VALUE);
  }

  /** Adds rows for the buckets that have a timer by the clock which is due, as a query's wakes do. */
  private List<Tuple2<Integer, byte[]>> wakes(long clock) {
    var out = new ArrayList<Tuple2<Integer, byte[]>>();
    ProcessSpec process = process();
    if (process == null || !process.timers()) return out;
    var header = new Header();
    header.source = Envelope.NO_SOURCE;
    handle.held().stream()
        .filter(held -> held.map().equals(ALARMS) && ProcessProcessor.timeOf(held.key()) <= clock)
        .map(MemoryHandle.Held::bucket).distinct()
        .forEach(bucket -> out.add(new Tuple2<>(bucket, header.envelope(Envelope.WAKE, process.address()))));
    return out;
  }

  /** @param oneByOne whether each row comes alone, and timers after each, as in real-time mode */
  List<Tuple2<Integer, byte[]>> batch(List<Tuple2<Integer, byte[]>> rows, long watermark, long clock, boolean oneByOne) {
    handle.begin();
    var now = new Now(clock, watermark);
    var out = new ArrayList<Tuple2<Integer, byte[]>>();
    var groups = new LinkedHashMap<Integer, List<Tuple2<Integer, byte[]>>>();
    var all = new ArrayList<>(rows);
    all.addAll(wakes(clock));
    for (var row : all) {
      if (oneByOne) {
        call(row._1(), List.of(row), now, out);
        expire(now, out);
      } else {
        groups.computeIfAbsent(row._1(), k -> new ArrayList<>()).add(row);
      }
    }
    // Spark sorts rows by bucket: those of a broadcast table come first.
    List<Integer> controls = groups.keySet().stream().filter(ControlBuckets::isControl).toList();
    for (Integer bucket : controls) call(bucket, groups.remove(bucket), now, out);
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
