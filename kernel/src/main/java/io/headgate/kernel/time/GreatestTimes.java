package io.headgate.kernel.time;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.AccumulatorV2;

/** The greatest event time that tasks have decoded of each partition of one stream, in epoch milliseconds. */
public final class GreatestTimes extends AccumulatorV2<Map<String, Long>, Map<String, Long>> {
  /** The time of a partition or a stream that has brought no event. */
  public static final long NONE = Long.MIN_VALUE;

  private final HashMap<String, Long> times = new HashMap<>();

  /** Returns one that tasks can be given. */
  public static GreatestTimes registered(SparkSession spark) {
    var out = new GreatestTimes();
    spark.sparkContext().register(out);
    return out;
  }

  @Override public synchronized boolean isZero() { return times.isEmpty(); }

  @Override public synchronized GreatestTimes copy() {
    var out = new GreatestTimes();
    out.times.putAll(times);
    return out;
  }

  @Override public synchronized void reset() { times.clear(); }

  synchronized void add(String partition, long time) { times.merge(partition, time, Math::max); }

  @Override public synchronized void add(Map<String, Long> more) { more.forEach(this::add); }

  @Override public synchronized void merge(AccumulatorV2<Map<String, Long>, Map<String, Long>> other) { add(other.value()); }

  @Override public synchronized Map<String, Long> value() { return Map.copyOf(times); }

  /** Returns what was decoded since the last call; for the driver, between batches. */
  public synchronized Map<String, Long> take() {
    Map<String, Long> out = value();
    times.clear();
    return out;
  }
}
