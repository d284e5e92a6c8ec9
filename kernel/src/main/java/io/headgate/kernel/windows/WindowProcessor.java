package io.headgate.kernel.windows;

import io.headgate.kernel.rows.BytesEncoder;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.HeldEntry;
import io.headgate.kernel.rows.PassingRows;
import io.headgate.kernel.time.BucketTimer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.sql.streaming.ExpiredTimerInfo;
import org.apache.spark.sql.streaming.MapState;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessorWithInitialState;
import org.apache.spark.sql.streaming.TTLConfig;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Keeps the open windows of each key, and tells what they hold early, when they close, and when more comes in afterwards.
 *
 * <p>Rows come by the bucket of their key ({@link io.headgate.kernel.rows.Bucket}), and carry the key as their last segment.
 * Spark hands over the rows of a batch before the timers of that batch, both under the same watermark. Rows addressed to other
 * operators pass through untouched.
 */
public final class WindowProcessor
    extends StatefulProcessorWithInitialState<Integer, Tuple2<Integer, byte[]>, Tuple2<Integer, byte[]>, Tuple2<Integer, byte[]>> {
  private static final Comparator<byte[]> BY_KEY = Envelope::compareLast;
  // Rows come out of a shuffle in any order.
  private static final Comparator<byte[]> BY_KEY_AND_PLACE = BY_KEY.thenComparing(Envelope::comparePositions);

  private final WindowSpec spec;

  /** By key; of the present bucket. */
  private transient MapState<byte[], byte[]> state;
  private transient BucketTimer timer;
  private transient KeyWindows windows;
  private transient Comparator<byte[]> order;
  private transient PassingRows passing;

  public WindowProcessor(WindowSpec spec) {
    this.spec = spec;
  }

  public WindowSpec spec() {
    return spec;
  }

  @Override public void init(OutputMode mode, TimeMode time) {
    state = getHandle().getMapState("windows", BytesEncoder.INSTANCE, BytesEncoder.INSTANCE, TTLConfig.NONE());
    timer = new BucketTimer(getHandle());
    windows = new KeyWindows(spec);
    passing = new PassingRows();
    order = spec.isOrdered() ? BY_KEY_AND_PLACE : BY_KEY;
  }

  /** Takes over the windows of a key as an earlier run kept them. */
  @Override public void handleInitialState(Integer bucket, Tuple2<Integer, byte[]> held, TimerValues timers) {
    byte[] key = HeldEntry.key(held._2());
    windows.enter(timers, row -> { });
    windows.begin(key, HeldEntry.value(held._2()));
    windows.takeOver();
    timer.wakeBy(save(key));
  }

  @Override public Iterator<Tuple2<Integer, byte[]>> handleInputRows(
      Integer bucket, Iterator<Tuple2<Integer, byte[]>> rows, TimerValues timers) {
    var out = new ArrayList<Tuple2<Integer, byte[]>>();
    List<byte[]> events = new ArrayList<>();
    while (rows.hasNext()) {
      Tuple2<Integer, byte[]> next = rows.next();
      if (Envelope.isFor(next._2(), spec.address())) events.add(next._2());
      else passing.take(next, out);
    }
    passing.leave(out);
    if (!events.isEmpty()) {
      windows.enter(timers, out::add);
      take(events, out);
    }
    return CollectionConverters.asScala(out.iterator());
  }

  private void take(List<byte[]> events, List<Tuple2<Integer, byte[]>> out) {
    if (events.size() > 1) events.sort(order);
    long earliest = BucketTimer.NEVER;
    for (int from = 0, to; from < events.size(); from = to) {
      to = Envelope.endOfRun(events, from);
      byte[] key = Envelope.last(events.get(from));
      windows.begin(key, state.getValue(key));
      int first = out.size();
      for (int i = from; i < to; i++) windows.take(events.get(i));
      // Where the order of events did not matter, there are late ones alone.
      if (order == BY_KEY && out.size() - first > 1) out.subList(first, out.size()).sort(PassingRows.BY_POSITION);
      if (windows.conclude()) earliest = Math.min(earliest, save(key));
    }
    timer.wakeBy(earliest);
  }

  @Override public Iterator<Tuple2<Integer, byte[]>> handleExpiredTimer(
      Integer bucket, TimerValues timers, ExpiredTimerInfo expired) {
    var out = new ArrayList<Tuple2<Integer, byte[]>>();
    windows.enter(timers, out::add);
    var due = new ArrayList<Tuple2<byte[], byte[]>>();
    long earliest = BucketTimer.NEVER;
    for (Iterator<Tuple2<byte[], byte[]>> all = state.iterator(); all.hasNext();) {
      Tuple2<byte[], byte[]> each = all.next();
      long moment = OpenWindows.due(each._2());
      if (moment <= timers.getCurrentWatermarkInMs()) due.add(each);
      else earliest = Math.min(earliest, moment);
    }
    for (Tuple2<byte[], byte[]> each : due) {
      windows.begin(each._1(), each._2());
      windows.wake();
      earliest = Math.min(earliest, save(each._1()));
    }
    timer.wakeAgain(earliest);
    return CollectionConverters.asScala(out.iterator());
  }

  /** Keeps what the present key's windows hold, and returns when the key is due. */
  private long save(byte[] key) {
    byte[] held = windows.state();
    if (held == null) state.removeKey(key);
    else state.updateValue(key, held);
    return held == null ? BucketTimer.NEVER : windows.due();
  }
}
