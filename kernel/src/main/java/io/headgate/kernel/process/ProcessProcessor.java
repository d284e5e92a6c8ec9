package io.headgate.kernel.process;

import io.headgate.kernel.broadcast.BroadcastTable;
import io.headgate.kernel.broadcast.ControlBuckets;
import io.headgate.kernel.functions.WorkerPool;
import io.headgate.kernel.operators.RowCache;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.HeldEntry;
import io.headgate.kernel.rows.PassingRows;
import io.headgate.kernel.time.BucketTimer;
import io.headgate.kernel.time.Pace;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.streaming.ExpiredTimerInfo;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessorWithInitialState;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Calls a keyed process function with the events and timers of each key, and keeps its state and timers.
 *
 * <p>Rows come by the bucket of their key ({@link io.headgate.kernel.rows.Bucket}), and carry the key as their last segment.
 * Spark hands over the rows of a batch before the timers of that batch, both under the same watermark. Rows addressed to other
 * operators pass through untouched.
 */
public final class ProcessProcessor
    extends StatefulProcessorWithInitialState<Integer, Tuple2<Integer, byte[]>, Tuple2<Integer, byte[]>, Tuple2<Integer, byte[]>> {
  /** The names of the variables of state, in the order of their numbers in entries that an earlier run kept. */
  public static final List<String> VARIABLES = List.of(KeyStore.NAME, "timers", "alarms", "expiries", BroadcastTable.NAME);

  private static final int BROADCAST = VARIABLES.indexOf(BroadcastTable.NAME);

  // Rows come out of a shuffle in any order.
  private static final Comparator<byte[]> BY_KEY_AND_PLACE =
      ((Comparator<byte[]>) Envelope::compareLast).thenComparing(Envelope::comparePositions);

  /** So many keys are cleaned up in one call; the others wait for the bucket's next. */
  private static final int MOST_CLEAN_UPS = 10_000;

  private final ProcessSpec spec;
  private final WorkerPool.Key pool;
  private final Alarms alarms;

  private transient KeyStore store;
  /** Null without one. */
  private transient BroadcastTable broadcast;
  /** By the kind of time: see {@link Emitted}. */
  private transient TimeIndex[] indexes;
  private transient BucketTimer timer;
  private transient PassingRows passing;
  /** Null as long as no row needs it: Spark calls init on the driver, too. */
  private transient ProcessCalls calls;

  /** Event timers that were registered at or below the watermark, by bucket: they fire when it moves, not before. */
  private transient Map<Integer, TreeSet<byte[]>> late;
  private transient long lateSince;

  // Of the present call.
  private transient Integer bucket;
  private transient long watermark;
  /** The earliest event timer that was added. */
  private transient long added;
  /** The bucket's earliest processing-time timer, unless {@link #recount}. */
  private transient long alarm;
  private transient boolean recount;

  // Of the entries that an earlier run kept: those of a bucket come one after the other.
  private transient Integer entered;
  private transient long enteredTimer;
  private transient long enteredAlarm;

  /** What is due of one key beside its events. */
  private static final class Due {
    final List<byte[]> alarms = new ArrayList<>(1);
    byte[] expiry;
  }

  public ProcessProcessor(ProcessSpec spec, WorkerPool.Key pool, Alarms alarms) {
    this.spec = spec;
    this.pool = pool;
    this.alarms = alarms;
  }

  public ProcessSpec spec() {
    return spec;
  }

  /** Returns the key that an entry of an earlier run's state is of: the variable's number, then its key there. */
  public static byte[] keyOf(byte[] entry, byte[] value) {
    return entry[0] == 0 ? KeyStore.keyOf(Arrays.copyOfRange(entry, 1, entry.length)) : value;
  }

  /** Returns whether an entry of an earlier run's state is a row of the broadcast table. */
  public static boolean isBroadcast(byte[] entry) {
    return entry[0] == BROADCAST;
  }

  /** Returns the time of an entry of timers, alarms or expiries, by its key there, in epoch milliseconds. */
  public static long timeOf(byte[] entry) {
    return TimeIndex.timeOf(entry);
  }

  @Override public void init(OutputMode mode, TimeMode time) {
    TaskContext task = TaskContext.get();
    RowCache recent = task == null ? RowCache.alone() : RowCache.of(getHandle().getQueryInfo(), spec.address(), task);
    store = new KeyStore(getHandle(), spec.state(), recent);
    indexes = new TimeIndex[BROADCAST - 1];
    for (int kind = 0; kind < indexes.length; kind++) indexes[kind] = new TimeIndex(getHandle(), VARIABLES.get(kind + 1));
    broadcast = spec.broadcast() == null ? null : new BroadcastTable(getHandle(), spec.broadcast(), spec.address());
    timer = new BucketTimer(getHandle());
    passing = new PassingRows();
    late = new HashMap<>();
    entered = null;
  }

  /** Takes over an entry of state as an earlier run kept it. */
  @Override public void handleInitialState(Integer bucket, Tuple2<Integer, byte[]> held, TimerValues timers) {
    byte[] key = HeldEntry.key(held._2());
    byte[] entry = Arrays.copyOfRange(key, 1, key.length);
    byte[] value = HeldEntry.value(held._2());
    if (key[0] == 0) {
      store.put(entry, value);
      return;
    }
    if (key[0] == BROADCAST) {
      broadcast.put(entry, value);
      return;
    }
    int kind = key[0] - 1;
    indexes[kind].put(entry, value);
    if (!spec.timers() || kind == Emitted.EXPIRY) return;
    if (!bucket.equals(entered)) {
      entered = bucket;
      enteredTimer = BucketTimer.NEVER;
      enteredAlarm = Alarms.NEVER;
    }
    long moment = TimeIndex.timeOf(entry);
    if (kind == Emitted.PROCESSING_TIME && moment < enteredAlarm) {
      enteredAlarm = moment;
      alarms.report(spec.address(), bucket, moment);
    } else if (kind == Emitted.EVENT_TIME && moment < enteredTimer) {
      enteredTimer = moment;
      timer.wakeBy(Math.max(moment, timers.getCurrentWatermarkInMs() + 1));
    }
  }

  @Override public Iterator<Tuple2<Integer, byte[]>> handleInputRows(
      Integer bucket, Iterator<Tuple2<Integer, byte[]>> rows, TimerValues timers) {
    var out = new ArrayList<Tuple2<Integer, byte[]>>();
    var events = new ArrayList<byte[]>();
    boolean woken = false;
    while (rows.hasNext()) {
      Tuple2<Integer, byte[]> next = rows.next();
      if (spec.find(next._2()) < 0) passing.take(next, out);
      else if (Envelope.kind(next._2()) == Envelope.WAKE) woken = true;
      else events.add(next._2());
    }
    passing.leave(out);
    if (ControlBuckets.isControl(bucket)) {
      if (!events.isEmpty()) broadcast.apply(bucket, events);
      return CollectionConverters.asScala(out.iterator());
    }
    // A bucket that has other operators' rows alone fires what is due, too: in the first batch that reaches its time.
    if (woken || !events.isEmpty() || spec.timers() && bucket < ProcessSpec.BUCKETS) {
      if (events.size() > 1) {
        if (spec.isConnected()) Merge.sort(events);
        else events.sort(BY_KEY_AND_PLACE);
      }
      enter(bucket, timers, 0, out);
      take(events, due(timers.getCurrentProcessingTimeInMs()));
      long first = added;
      if (spec.timers() && first != TimeIndex.NEVER) timer.wakeBy(Math.max(first, watermark + 1));
      leave();
      if (watermark >= Pace.END && first <= watermark) {
        // Event time moves no more: what the last batch sets fires in it.
        late.remove(bucket);
        timer.wakeBy(fireEventTimers(bucket, timers, out));
      }
    }
    return CollectionConverters.asScala(out.iterator());
  }

  private void enter(Integer bucket, TimerValues timers, int phase, List<Tuple2<Integer, byte[]>> out) {
    this.bucket = bucket;
    watermark = timers.getCurrentWatermarkInMs();
    if (watermark != lateSince) late.clear();
    lateSince = watermark;
    added = TimeIndex.NEVER;
    recount = false;
    if (calls == null || calls.isEnded()) calls = new ProcessCalls(spec, pool, store, broadcast);
    long batch = getHandle().getQueryInfo().getBatchId();
    calls.enter(
        bucket, timers.getCurrentProcessingTimeInMs(), watermark > 0 ? watermark : Long.MIN_VALUE, batch, phase, out::add,
        this::change);
  }

  /** Returns what is due by the clock, by key. */
  private TreeMap<byte[], Due> due(long now) {
    var out = new TreeMap<byte[], Due>(Arrays::compareUnsigned);
    if (spec.timers()) {
      for (TimeIndex.Due each : indexes[Emitted.PROCESSING_TIME].take(now, null, Integer.MAX_VALUE))
        out.computeIfAbsent(each.key(), k -> new Due()).alarms.add(each.entry());
      alarm = indexes[Emitted.PROCESSING_TIME].next();
    }
    if (spec.ttl())
      for (TimeIndex.Due each : indexes[Emitted.EXPIRY].take(now, null, MOST_CLEAN_UPS))
        out.computeIfAbsent(each.key(), k -> new Due()).expiry = each.entry();
    return out;
  }

  private void take(List<byte[]> events, TreeMap<byte[], Due> due) {
    for (int from = 0; from < events.size() || !due.isEmpty();) {
      byte[] key = from < events.size() ? Envelope.last(events.get(from)) : null;
      byte[] first = due.isEmpty() ? null : due.firstKey();
      if (key == null || first != null && Arrays.compareUnsigned(first, key) < 0) {
        conclude(first, due.remove(first));
        continue;
      }
      int to = Envelope.endOfRun(events, from);
      for (int i = from; i < to; i++) {
        calls.to(key);
        calls.event(events.get(i));
      }
      Due more = due.remove(key);
      if (more != null) conclude(key, more);
      from = to;
    }
    calls.finish();
  }

  private void conclude(byte[] key, Due due) {
    for (byte[] entry : due.alarms) fire(Emitted.PROCESSING_TIME, key, entry);
    if (due.expiry == null) return;
    calls.to(key);
    if (indexes[Emitted.EXPIRY].claim(due.expiry)) calls.cleanUp();
  }

  private void fire(int kind, byte[] key, byte[] entry) {
    // An exchange before may have canceled it: that is known once the key is in the present one.
    calls.to(key);
    if (indexes[kind].claim(entry)) calls.timer(kind, TimeIndex.timeOf(entry));
  }

  @Override public Iterator<Tuple2<Integer, byte[]>> handleExpiredTimer(
      Integer bucket, TimerValues timers, ExpiredTimerInfo expired) {
    var out = new ArrayList<Tuple2<Integer, byte[]>>();
    // An earlier version of the function may have left timers.
    if (spec.timers()) timer.wakeAgain(fireEventTimers(bucket, timers, out));
    return CollectionConverters.asScala(out.iterator());
  }

  /** Fires the event timers that are due, and returns when the bucket is to be woken next. */
  private long fireEventTimers(Integer bucket, TimerValues timers, List<Tuple2<Integer, byte[]>> out) {
    enter(bucket, timers, 1, out);
    recount = true;
    TimeIndex index = indexes[Emitted.EVENT_TIME];
    List<TimeIndex.Due> due = index.take(watermark, late.get(bucket), Integer.MAX_VALUE);
    for (int from = 0, to; from < due.size(); from = to) {
      to = Math.min(due.size(), from + ProcessCalls.MOST);
      fireTogether(due.subList(from, to));
    }
    long earliest = index.earliest();
    leave();
    return earliest == TimeIndex.NEVER ? BucketTimer.NEVER : Math.max(earliest, watermark + 1);
  }

  /** Fires event timers in one exchange, those of a key one after the other. */
  private void fireTogether(List<TimeIndex.Due> due) {
    var byKey = new TreeMap<byte[], List<byte[]>>(Arrays::compareUnsigned);
    for (TimeIndex.Due each : due) byKey.computeIfAbsent(each.key(), k -> new ArrayList<>(1)).add(each.entry());
    byKey.forEach((key, entries) -> entries.forEach(entry -> fire(Emitted.EVENT_TIME, key, entry)));
    calls.finish();
  }

  /** Does what a function did to a key's timers, or to the time of its clean-up. */
  private void change(byte[] key, int what, long time) {
    int kind = what & ~ProcessCalls.REMOVE;
    TimeIndex index = indexes[kind];
    byte[] entry = index.entry(time, key);
    if ((what & ProcessCalls.REMOVE) != 0) {
      index.remove(entry);
      recount |= kind == Emitted.PROCESSING_TIME && time == alarm;
      return;
    }
    if (kind == Emitted.PROCESSING_TIME) alarm = Math.min(alarm, time);
    if (kind == Emitted.EVENT_TIME) {
      added = Math.min(added, time);
      // One that is due in this batch as it is still fires in it.
      if (time <= watermark && !index.has(entry)) late.computeIfAbsent(bucket, b -> TimeIndex.entries()).add(entry);
    }
    index.put(entry, key);
  }

  private void leave() {
    if (spec.timers()) alarms.report(spec.address(), bucket, recount ? indexes[Emitted.PROCESSING_TIME].earliest() : alarm);
    // Without a task nothing says when the operator is not used any more.
    if (TaskContext.get() == null) calls.end(true);
  }
}
