package io.headgate.kernel;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.AccumulatorV2;

/**
 * Counts the rows that leave each port of a flow.
 *
 * <p>A count costs a row an increment in its task; Spark brings the tasks' counts together as it does with any accumulator. A
 * task that is tried again may count twice what it did twice: these are figures to look at, and nothing rests on them.
 */
public final class PortTally extends AccumulatorV2<Integer, long[]> {
  private static final Map<String, PortTally> RUNS = new ConcurrentHashMap<>();

  /** Known on the driver alone; tasks go by place. */
  private final transient List<String> names = new ArrayList<>();
  private long[] counts;

  private PortTally(long[] counts) {
    this.counts = counts;
  }

  /** Returns one that tasks can be given. */
  public static PortTally registered(SparkSession spark) {
    var out = new PortTally(new long[0]);
    spark.sparkContext().register(out);
    return out;
  }

  /** Returns the place of a port; all are named before the first task starts. */
  public int place(String port) {
    int known = names.indexOf(port);
    if (known >= 0) return known;
    names.add(port);
    counts = Arrays.copyOf(counts, names.size());
    return names.size() - 1;
  }

  /** Makes the counts those of a query. */
  public void follow(String run) {
    RUNS.put(run, this);
  }

  public static void forget(String run) {
    RUNS.remove(run);
  }

  /** Returns the rows by port since the last call, zero among them; empty for a query that counts none. */
  public static Map<String, Long> take(String run) {
    var out = new LinkedHashMap<String, Long>();
    PortTally tally = RUNS.get(run);
    if (tally == null) return out;
    for (int i = 0; i < tally.names.size(); i++) out.put(tally.names.get(i), tally.counts[i]);
    tally.reset();
    return out;
  }

  public void count(int place) {
    counts[place]++;
  }

  @Override public boolean isZero() {
    for (long count : counts) if (count != 0) return false;
    return true;
  }

  @Override public PortTally copy() {
    return new PortTally(counts.clone());
  }

  @Override public void reset() {
    Arrays.fill(counts, 0);
  }

  @Override public void add(Integer place) {
    count(place);
  }

  @Override public void merge(AccumulatorV2<Integer, long[]> other) {
    long[] more = other.value();
    if (counts.length < more.length) counts = Arrays.copyOf(counts, more.length);
    for (int i = 0; i < more.length; i++) counts[i] += more[i];
  }

  @Override public long[] value() {
    return counts;
  }
}
