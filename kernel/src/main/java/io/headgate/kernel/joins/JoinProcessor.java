package io.headgate.kernel.joins;

import io.headgate.kernel.rows.BytesEncoder;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.HeldEntry;
import io.headgate.kernel.rows.PassingRows;
import io.headgate.kernel.time.BucketTimer;
import java.util.ArrayList;
import java.util.Arrays;
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
 * Joins two streams by key and time: rows of both sides wait until nothing can match them any more.
 *
 * <p>Rows come by the bucket of their key ({@link io.headgate.kernel.rows.Bucket}), and carry the key as their last segment; a
 * side has its own address. Spark hands over the rows of a batch before the timers of that batch, both under the same watermark.
 * A row is late if its time is below the watermark. Rows addressed to other operators pass through untouched.
 */
public final class JoinProcessor
    extends StatefulProcessorWithInitialState<Integer, Tuple2<Integer, byte[]>, Tuple2<Integer, byte[]>, Tuple2<Integer, byte[]>> {
  /** What the operator calls its state; the number of a variable is its place here. */
  public static final List<String> VARIABLES = List.of("rows", "due");

  // Rows come out of a shuffle in any order.
  private static final Comparator<byte[]> BY_KEY_AND_PLACE =
      ((Comparator<byte[]>) Envelope::compareLast).thenComparing(Envelope::comparePositions);

  private final JoinSpec spec;

  private transient MapState<byte[], byte[]> state;
  private transient KeyRows rows;
  private transient DueKeys due;
  private transient KeyJoin join;
  private transient BucketTimer timer;
  private transient PassingRows passing;

  public JoinProcessor(JoinSpec spec) {
    this.spec = spec;
  }

  public JoinSpec spec() {
    return spec;
  }

  /** Returns the key that an entry of an earlier run's state is of: the variable's number, then its key there. */
  public static byte[] keyOf(byte[] entry) {
    return entry[0] == 0 ? KeyRows.keyOf(Arrays.copyOfRange(entry, 1, entry.length)) : entry;
  }

  @Override public void init(OutputMode mode, TimeMode time) {
    state = getHandle().getMapState(VARIABLES.get(0), BytesEncoder.INSTANCE, BytesEncoder.INSTANCE, TTLConfig.NONE());
    due = new DueKeys(getHandle(), VARIABLES.get(1), spec.before() + spec.after());
    rows = new KeyRows(spec, state);
    join = new KeyJoin(spec, rows, due);
    timer = new BucketTimer(getHandle());
    passing = new PassingRows();
  }

  /** Takes over an entry of state as an earlier run kept it; when keys are due follows from their records. */
  @Override public void handleInitialState(Integer bucket, Tuple2<Integer, byte[]> held, TimerValues timers) {
    byte[] name = HeldEntry.key(held._2());
    if (name[0] != 0) return;
    byte[] entry = Arrays.copyOfRange(name, 1, name.length);
    byte[] value = HeldEntry.value(held._2());
    state.updateValue(entry, value);
    if (entry[0] != KeyRows.RECORD) return;
    byte[] key = KeyRows.keyOf(entry);
    rows.begin(key);
    due.add(rows.takeOver(timers.getCurrentWatermarkInMs()), key);
    timer.wakeBy(due.write());
  }

  @Override public Iterator<Tuple2<Integer, byte[]>> handleInputRows(
      Integer bucket, Iterator<Tuple2<Integer, byte[]>> input, TimerValues timers) {
    var out = new ArrayList<Tuple2<Integer, byte[]>>();
    List<byte[]> events = new ArrayList<>();
    while (input.hasNext()) {
      Tuple2<Integer, byte[]> next = input.next();
      boolean mine = Envelope.isFor(next._2(), spec.address()) || Envelope.isFor(next._2(), spec.rightAddress());
      if (mine) events.add(next._2());
      else passing.take(next, out);
    }
    passing.leave(out);
    var made = new JoinOutput();
    out.forEach(made::add);
    if (!events.isEmpty()) {
      if (events.size() > 1) events.sort(BY_KEY_AND_PLACE);
      join.enter(bucket, timers.getCurrentWatermarkInMs(), made);
      for (int from = 0, to; from < events.size(); from = to) {
        to = Envelope.endOfRun(events, from);
        join.take(events.subList(from, to));
      }
      timer.wakeBy(due.write());
    }
    return CollectionConverters.asScala(made);
  }

  @Override public Iterator<Tuple2<Integer, byte[]>> handleExpiredTimer(
      Integer bucket, TimerValues timers, ExpiredTimerInfo expired) {
    var made = new JoinOutput();
    long watermark = timers.getCurrentWatermarkInMs();
    join.enter(bucket, watermark, made);
    for (byte[] key : due.take(watermark)) join.wake(key);
    timer.wakeAgain(Math.min(due.earliestLeft(), due.write()));
    return CollectionConverters.asScala(made);
  }
}
