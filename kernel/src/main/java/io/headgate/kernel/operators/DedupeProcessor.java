package io.headgate.kernel.operators;

import io.headgate.kernel.plan.Route;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.Header;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.streaming.ExpiredTimerInfo;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessorWithInitialState;
import org.apache.spark.sql.streaming.TTLConfig;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.apache.spark.sql.streaming.ValueState;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Lets one event of a key pass, and tells those apart that repeat it within a span of event time.
 *
 * <p>Within one call events are taken by when they happened, then by their place. An event is late where the watermark has
 * passed it by the span; a time is kept for twice the span, as long as an event that is not late may repeat it. Rows addressed
 * to other operators pass through untouched.
 */
public final class DedupeProcessor
    extends StatefulProcessorWithInitialState<byte[], Tuple2<byte[], byte[]>, Tuple2<byte[], byte[]>, Tuple2<byte[], byte[]>> {
  private static final Comparator<byte[]> BY_TIME =
      Comparator.<byte[]>comparingLong(Envelope::eventTime).thenComparing(Envelope::comparePositions);

  private final int address;
  private final Layout layout;
  private final long within;
  private final Route unique;
  private final Route repeated;
  private final Route late;

  private transient ValueState<byte[]> state;
  private transient KeptTimes kept;
  private transient SegmentedRow row;
  private transient Header header;

  /** @param within how far apart in ms of event time two events must be to count as two */
  public DedupeProcessor(int address, Layout layout, long within, Route unique, Route repeated, Route late) {
    this.address = address;
    this.layout = layout;
    this.within = within;
    this.unique = unique;
    this.repeated = repeated;
    this.late = late;
  }

  /** Returns what events look like. */
  public Layout layout() {
    return layout;
  }

  @Override public void init(OutputMode mode, TimeMode time) {
    state = getHandle().getValueState("seen", Encoders.BINARY(), TTLConfig.NONE());
    kept = new KeptTimes();
    row = new SegmentedRow(layout);
    header = new Header();
  }

  /** Takes over the times of a key as an earlier run kept them; its timer was that run's. */
  @Override public void handleInitialState(byte[] key, Tuple2<byte[], byte[]> held, TimerValues timers) {
    kept.read(held._2());
    kept.timer = KeptTimes.NEVER;
    save(timers.getCurrentWatermarkInMs());
  }

  @Override public Iterator<Tuple2<byte[], byte[]>> handleInputRows(
      byte[] key, Iterator<Tuple2<byte[], byte[]>> rows, TimerValues timers) {
    var out = new ArrayList<Tuple2<byte[], byte[]>>();
    List<byte[]> events = null;
    while (rows.hasNext()) {
      Tuple2<byte[], byte[]> next = rows.next();
      if (!Envelope.isFor(next._2(), address)) {
        out.add(next);
      } else {
        if (events == null) events = new ArrayList<>(2);
        events.add(next._2());
      }
    }
    if (events != null) take(events, timers.getCurrentWatermarkInMs(), key, out);
    return CollectionConverters.asScala(out.iterator());
  }

  private void take(List<byte[]> events, long watermark, byte[] key, List<Tuple2<byte[], byte[]>> out) {
    if (events.size() > 1) events.sort(BY_TIME);
    boolean loaded = false;
    boolean changed = false;
    for (byte[] event : events) {
      long time = Envelope.eventTime(event);
      Route way = late;
      if (time + within > watermark || Envelope.isOnTime(event)) {
        if (!loaded) kept.read(state.get());
        loaded = true;
        boolean added = kept.add(time, within);
        changed |= added;
        way = added ? unique : repeated;
      }
      row.read(event);
      header.read(event);
      way.send(row, header, key, out::add);
    }
    if (changed) save(watermark);
  }

  @Override public Iterator<Tuple2<byte[], byte[]>> handleExpiredTimer(
      byte[] key, TimerValues timers, ExpiredTimerInfo expired) {
    byte[] held = state.get();
    if (held != null) {
      kept.read(held);
      kept.forget(timers.getCurrentWatermarkInMs() - 2 * within);
      // Spark deletes the timer that has expired, once this returns.
      if (kept.timer == expired.getExpiryTimeInMs()) kept.timer = KeptTimes.NEVER;
      save(timers.getCurrentWatermarkInMs());
    }
    return CollectionConverters.asScala(List.<Tuple2<byte[], byte[]>>of().iterator());
  }

  private void save(long watermark) {
    // A timer that is about to expire stays as it is: it is looked at again then.
    if (kept.timer > watermark)
      setTimer(kept.isEmpty() ? KeptTimes.NEVER : Math.max(kept.earliest() + 2 * within, watermark + 1));
    if (kept.isEmpty()) state.clear();
    else state.update(kept.write());
  }

  private void setTimer(long moment) {
    if (moment == kept.timer) return;
    if (kept.timer != KeptTimes.NEVER) getHandle().deleteTimer(kept.timer);
    if (moment != KeptTimes.NEVER) getHandle().registerTimer(moment);
    kept.timer = moment;
  }
}
