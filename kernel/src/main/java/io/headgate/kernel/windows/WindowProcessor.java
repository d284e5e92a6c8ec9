package io.headgate.kernel.windows;

import io.headgate.kernel.rows.Envelope;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.sql.Encoders;
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
 * <p>Rows come by the bucket of their key ({@link io.headgate.kernel.rows.Bucket}), and carry the key as their last segment. A
 * bucket has one timer, for the earliest moment at which one of its keys is due, always above the watermark: Spark may skip
 * those at or below it. Spark hands over the rows of a batch before the timers of that batch, both under the same watermark.
 * Rows addressed to other operators pass through untouched.
 */
public final class WindowProcessor
    extends StatefulProcessorWithInitialState<byte[], Tuple2<byte[], byte[]>, Tuple2<byte[], byte[]>, Tuple2<byte[], byte[]>> {
  private static final Comparator<byte[]> BY_KEY = Envelope::compareLast;
  // Rows come out of a shuffle in any order.
  private static final Comparator<byte[]> BY_KEY_AND_PLACE = BY_KEY.thenComparing(Envelope::comparePositions);

  private final WindowSpec spec;

  /** By key; of the present bucket. */
  private transient MapState<byte[], byte[]> state;
  private transient KeyWindows windows;
  private transient Comparator<byte[]> order;

  public WindowProcessor(WindowSpec spec) {
    this.spec = spec;
  }

  public WindowSpec spec() {
    return spec;
  }

  @Override public void init(OutputMode mode, TimeMode time) {
    state = getHandle().getMapState("windows", Encoders.BINARY(), Encoders.BINARY(), TTLConfig.NONE());
    windows = new KeyWindows(spec);
    order = spec.isOrdered() ? BY_KEY_AND_PLACE : BY_KEY;
  }

  /** Takes over the windows of a key as an earlier run kept them: the length of the key (big endian), the key, its windows. */
  @Override public void handleInitialState(byte[] bucket, Tuple2<byte[], byte[]> held, TimerValues timers) {
    ByteBuffer bytes = ByteBuffer.wrap(held._2());
    byte[] key = new byte[bytes.getInt()];
    bytes.get(key);
    byte[] value = new byte[bytes.remaining()];
    bytes.get(value);
    windows.enter(timers, row -> { });
    windows.begin(key, value);
    windows.takeOver();
    wakeBy(save(key));
  }

  @Override public Iterator<Tuple2<byte[], byte[]>> handleInputRows(
      byte[] bucket, Iterator<Tuple2<byte[], byte[]>> rows, TimerValues timers) {
    var out = new ArrayList<Tuple2<byte[], byte[]>>();
    List<byte[]> events = new ArrayList<>();
    while (rows.hasNext()) {
      Tuple2<byte[], byte[]> next = rows.next();
      if (Envelope.isFor(next._2(), spec.address())) events.add(next._2());
      else out.add(next);
    }
    if (!events.isEmpty()) {
      windows.enter(timers, out::add);
      take(events);
    }
    return CollectionConverters.asScala(out.iterator());
  }

  private void take(List<byte[]> events) {
    if (events.size() > 1) events.sort(order);
    long earliest = OpenWindow.NEVER;
    for (int i = 0; i < events.size();) {
      byte[] first = events.get(i);
      byte[] key = Envelope.last(first);
      windows.begin(key, state.getValue(key));
      do windows.take(events.get(i++));
      while (i < events.size() && Envelope.compareLast(first, events.get(i)) == 0);
      if (windows.conclude()) earliest = Math.min(earliest, save(key));
    }
    wakeBy(earliest);
  }

  @Override public Iterator<Tuple2<byte[], byte[]>> handleExpiredTimer(
      byte[] bucket, TimerValues timers, ExpiredTimerInfo expired) {
    var out = new ArrayList<Tuple2<byte[], byte[]>>();
    windows.enter(timers, out::add);
    var due = new ArrayList<Tuple2<byte[], byte[]>>();
    long earliest = OpenWindow.NEVER;
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
    // Spark deletes the timer that has expired, once this returns.
    if (earliest != OpenWindow.NEVER) getHandle().registerTimer(earliest);
    return CollectionConverters.asScala(out.iterator());
  }

  /** Keeps what the present key's windows hold, and returns when the key is due. */
  private long save(byte[] key) {
    byte[] held = windows.state();
    if (held == null) state.removeKey(key);
    else state.updateValue(key, held);
    return held == null ? OpenWindow.NEVER : windows.due();
  }

  /** Has the bucket woken at a moment, if it is not woken before. */
  private void wakeBy(long moment) {
    long registered = registered();
    if (moment >= registered) return;
    if (registered != OpenWindow.NEVER) getHandle().deleteTimer(registered);
    getHandle().registerTimer(moment);
  }

  private long registered() {
    Iterator<Object> timers = getHandle().listTimers();
    long found = OpenWindow.NEVER;
    while (timers.hasNext()) found = Math.min(found, (Long) timers.next());
    return found;
  }
}
