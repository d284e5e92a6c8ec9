package io.headgate.kernel.time;

import io.headgate.kernel.gate.Gatekeeper.Look;
import io.headgate.kernel.gate.Partitioned.Progress;
import java.util.Collections;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/** What is known of the partitions of one timed stream; serves the query's thread. */
public final class PartitionTimes {
  private static final class Partition {
    long max = GreatestTimes.NONE;
    /** Null before the first look. */
    Progress progress;
    /** When it last brought an event, or had something left to read. */
    long activeNanos;
    /** Whether it was last read without an event in it. */
    boolean barren;
  }

  private final SortedMap<String, Partition> all = new TreeMap<>();
  private Look last;

  /** Takes over what an earlier batch has logged; one that is repeated after a crash may have been decoded before. */
  public void begin(Map<String, Long> times) {
    times.forEach((name, time) -> find(name).max = Math.max(find(name).max, time));
  }

  private Partition find(String name) {
    return all.computeIfAbsent(name, n -> new Partition());
  }

  /** Takes note of what a batch has decoded: the greatest event time by partition. */
  public void decoded(Map<String, Long> times, long nanos) {
    for (Partition each : all.values())
      if (each.progress == Progress.READING || each.progress == Progress.UNREAD) each.barren = true;
    times.forEach((name, time) -> {
      Partition partition = find(name);
      partition.max = Math.max(partition.max, time);
      partition.activeNanos = nanos;
      partition.barren = false;
    });
  }

  /** Takes note of how far the coming batch reads each partition. Those that are gone are forgotten. */
  public void looked(Look look) {
    if (look == null || look.equals(last)) return;
    last = look;
    all.keySet().retainAll(look.partitions().keySet());
    look.partitions().forEach((name, progress) -> {
      Partition partition = find(name);
      if (progress == Progress.NEW) partition.max = GreatestTimes.NONE;
      boolean active = switch (progress) {
        case NEW, UNREAD -> true;
        case READING -> !partition.barren;
        case EMPTY, READ -> partition.progress == null;
      };
      if (active) partition.activeNanos = look.nanos();
      partition.progress = progress;
    });
  }

  /** Returns the partitions that were looked at, by name. */
  public SortedMap<String, Pace.Partition> partitions() {
    var out = new TreeMap<String, Pace.Partition>();
    all.forEach((name, each) -> {
      if (each.progress == null) return;
      long quiet = Math.max(0, (last.nanos() - each.activeNanos) / 1_000_000);
      out.put(name, new Pace.Partition(each.max, each.progress == Progress.EMPTY, quiet));
    });
    return out;
  }

  /** Returns the greatest event time of each partition that has brought an event. */
  public SortedMap<String, Long> times() {
    var out = new TreeMap<String, Long>();
    all.forEach((name, each) -> {
      if (each.max != GreatestTimes.NONE) out.put(name, each.max);
    });
    return Collections.unmodifiableSortedMap(out);
  }
}
