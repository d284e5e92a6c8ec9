package io.headgate.kernel.time;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.AccumulatorV2;

/** The greatest event time that tasks have decoded of one stream since the flow was compiled, in epoch milliseconds. */
public final class GreatestTime extends AccumulatorV2<Long, Long> {
  /** What it is before the first event. */
  public static final long NONE = Long.MIN_VALUE;

  private long greatest = NONE;

  /** Returns one that tasks can be given. */
  public static GreatestTime registered(SparkSession spark) {
    var out = new GreatestTime();
    spark.sparkContext().register(out);
    return out;
  }

  @Override public boolean isZero() { return greatest == NONE; }

  @Override public GreatestTime copy() {
    var out = new GreatestTime();
    out.greatest = greatest;
    return out;
  }

  @Override public void reset() { greatest = NONE; }

  @Override public void add(Long time) { greatest = Math.max(greatest, time); }

  @Override public void merge(AccumulatorV2<Long, Long> other) { add(other.value()); }

  @Override public Long value() { return greatest; }
}
