package io.headgate.kernel.process;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.AccumulatorV2;

/** The earliest processing-time timer of each bucket of the process operators, in epoch milliseconds; tasks report it. */
public final class Alarms extends AccumulatorV2<Map<Long, Long>, Map<Long, Long>> {
  /** The time of a bucket without timers. */
  public static final long NEVER = Long.MAX_VALUE;

  private final HashMap<Long, Long> earliest = new HashMap<>();

  /** Returns one that tasks can be given. */
  public static Alarms registered(SparkSession spark) {
    var out = new Alarms();
    spark.sparkContext().register(out);
    return out;
  }

  @Override public synchronized boolean isZero() { return earliest.isEmpty(); }

  @Override public synchronized Alarms copy() {
    var out = new Alarms();
    out.earliest.putAll(earliest);
    return out;
  }

  @Override public synchronized void reset() { earliest.clear(); }

  /** Takes note of a bucket's earliest timer as of now; what was reported of the bucket before no longer counts. */
  public synchronized void report(int address, int bucket, long time) {
    earliest.put((long) address << 32 | bucket, time);
  }

  @Override public synchronized void add(Map<Long, Long> more) { earliest.putAll(more); }

  @Override public synchronized void merge(AccumulatorV2<Map<Long, Long>, Map<Long, Long>> other) { add(other.value()); }

  @Override public synchronized Map<Long, Long> value() { return Map.copyOf(earliest); }

  /** Returns the earliest timer of all that was reported; for the driver, between batches. */
  public synchronized long earliest() {
    long out = NEVER;
    for (long time : earliest.values()) out = Math.min(out, time);
    return out;
  }
}
