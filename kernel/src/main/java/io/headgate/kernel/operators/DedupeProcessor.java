package io.headgate.kernel.operators;

import io.headgate.kernel.plan.Route;
import io.headgate.kernel.rows.BytesEncoder;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.Header;
import io.headgate.kernel.rows.HeldEntry;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.PassingRows;
import io.headgate.kernel.rows.SegmentedRow;
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
 * Lets one event of a key pass, and tells those apart that repeat it within a span of event time.
 *
 * <p>Rows come by the bucket of their key ({@link io.headgate.kernel.rows.Bucket}), and carry the key as their last segment.
 * Within one call the events of a key are taken by when they happened, then by their place. An event is late where the
 * watermark has passed it by the span; a time is kept for twice the span and a little more, at least as long as an event that
 * is not late may repeat it. Rows addressed to other operators pass through untouched.
 */
public final class DedupeProcessor
    extends StatefulProcessorWithInitialState<Integer, Tuple2<Integer, byte[]>, Tuple2<Integer, byte[]>, Tuple2<Integer, byte[]>> {
  private static final Comparator<byte[]> BY_KEY = Envelope::compareLast;
  private static final Comparator<byte[]> BY_KEY_AND_TIME =
      BY_KEY.thenComparingLong(Envelope::eventTime).thenComparing(Envelope::comparePositions);

  /**
   * How often within the span a bucket is looked through for times to forget.
   *
   * <p>There is always some key that is due. Looking at all keys of a bucket for each would cost more with every key it has.
   */
  private static final int LOOKS = 4;

  private final int address;
  private final Layout layout;
  private final long within;
  private final Route unique;
  private final Route repeated;
  private final Route late;

  /** By key; of the present bucket. */
  private transient MapState<byte[], byte[]> state;
  private transient BucketTimer timer;
  private transient KeptTimes kept;
  private transient SegmentedRow row;
  private transient Header header;
  private transient PassingRows passing;

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
    state = getHandle().getMapState("seen", BytesEncoder.INSTANCE, BytesEncoder.INSTANCE, TTLConfig.NONE());
    timer = new BucketTimer(getHandle());
    kept = new KeptTimes();
    row = new SegmentedRow(layout);
    header = new Header();
    passing = new PassingRows();
  }

  /** Takes over the times of a key as an earlier run kept them. */
  @Override public void handleInitialState(Integer bucket, Tuple2<Integer, byte[]> held, TimerValues timers) {
    kept.read(HeldEntry.value(held._2()));
    timer.wakeBy(save(HeldEntry.key(held._2()), timers.getCurrentWatermarkInMs()));
  }

  @Override public Iterator<Tuple2<Integer, byte[]>> handleInputRows(
      Integer bucket, Iterator<Tuple2<Integer, byte[]>> rows, TimerValues timers) {
    var out = new ArrayList<Tuple2<Integer, byte[]>>();
    var events = new ArrayList<byte[]>();
    while (rows.hasNext()) {
      Tuple2<Integer, byte[]> next = rows.next();
      if (Envelope.isFor(next._2(), address)) events.add(next._2());
      else passing.take(next, out);
    }
    passing.leave(out);
    if (events.size() > 1) events.sort(BY_KEY_AND_TIME);
    long earliest = BucketTimer.NEVER;
    for (int from = 0, to; from < events.size(); from = to) {
      to = Envelope.endOfRun(events, from);
      earliest = Math.min(earliest, take(events.subList(from, to), timers.getCurrentWatermarkInMs(), bucket, out));
    }
    if (earliest != BucketTimer.NEVER) timer.wakeBy(earliest);
    return CollectionConverters.asScala(out.iterator());
  }

  /** Returns when the bucket is to be woken for the events of a key. */
  private long take(List<byte[]> events, long watermark, Integer bucket, List<Tuple2<Integer, byte[]>> out) {
    byte[] key = Envelope.last(events.get(0));
    boolean loaded = false;
    boolean changed = false;
    int first = out.size();
    for (byte[] event : events) {
      long time = Envelope.eventTime(event);
      Route way = late;
      if (time + within > watermark || Envelope.isOnTime(event)) {
        if (!loaded) kept.read(state.getValue(key));
        loaded = true;
        boolean added = kept.add(time, within);
        changed |= added;
        way = added ? unique : repeated;
      }
      row.read(event);
      header.read(event);
      way.send(row, header, bucket, out::add);
    }
    // They were taken by when they happened, and leave in the order of their sources.
    if (out.size() - first > 1) out.subList(first, out.size()).sort(PassingRows.BY_POSITION);
    return changed ? save(key, watermark) : BucketTimer.NEVER;
  }

  @Override public Iterator<Tuple2<Integer, byte[]>> handleExpiredTimer(
      Integer bucket, TimerValues timers, ExpiredTimerInfo expired) {
    long watermark = timers.getCurrentWatermarkInMs();
    var due = new ArrayList<Tuple2<byte[], byte[]>>();
    long earliest = BucketTimer.NEVER;
    for (Iterator<Tuple2<byte[], byte[]>> all = state.iterator(); all.hasNext();) {
      Tuple2<byte[], byte[]> each = all.next();
      long until = KeptTimes.earliest(each._2()) + 2 * within;
      if (until <= watermark) due.add(each);
      else earliest = Math.min(earliest, wake(until, watermark));
    }
    for (Tuple2<byte[], byte[]> each : due) {
      kept.read(each._2());
      kept.forget(watermark - 2 * within);
      earliest = Math.min(earliest, save(each._1(), watermark));
    }
    timer.wakeAgain(earliest);
    return CollectionConverters.asScala(List.<Tuple2<Integer, byte[]>>of().iterator());
  }

  /** Keeps the present times of a key, and returns when the bucket is to be woken for them. */
  private long save(byte[] key, long watermark) {
    if (kept.isEmpty()) state.removeKey(key);
    else state.updateValue(key, kept.write());
    return kept.isEmpty() ? BucketTimer.NEVER : wake(kept.earliest() + 2 * within, watermark);
  }

  /** Returns the next look at or behind a moment, above the watermark. */
  private long wake(long moment, long watermark) {
    long step = Math.max(1, within / LOOKS);
    return -Math.floorDiv(-Math.max(moment, watermark + 1), step) * step;
  }
}
