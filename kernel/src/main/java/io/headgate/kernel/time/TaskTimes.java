package io.headgate.kernel.time;

import io.headgate.kernel.gate.Partitioned;
import io.headgate.kernel.rows.RawRecord;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The greatest event time of each partition that one task reads. */
public final class TaskTimes {
  /** A task that is not read to its end has told of most of its rows; a call per row would cost too much. */
  private static final int TELL_EVERY = 4096;

  private final GreatestTimes told;
  private final boolean partitioned;
  private final List<Partition> partitions = new ArrayList<>();
  private Partition current;
  private int untold;

  private static final class Partition {
    final String name;
    final byte[] topic;
    final int number;
    long greatest = GreatestTimes.NONE;

    Partition(String name, byte[] topic, int number) {
      this.name = name;
      this.topic = topic;
      this.number = number;
    }

    boolean holds(byte[] record, int number) {
      int start = RawRecord.topicStart(record);
      return this.number == number
          && Arrays.equals(topic, 0, topic.length, record, start, start + RawRecord.topicLength(record));
    }
  }

  /** @param partitioned whether a topic has partitions; the parts of one that has none are one sequence */
  public TaskTimes(GreatestTimes told, boolean partitioned) {
    this.told = told;
    this.partitioned = partitioned;
  }

  /** Takes note of an event. */
  public void add(byte[] record, long time) {
    int number = partitioned ? RawRecord.partition(record) : 0;
    // Records of a partition come in runs.
    if (current == null || !current.holds(record, number)) current = find(record, number);
    if (time > current.greatest) current.greatest = time;
    if (++untold == TELL_EVERY) tell();
  }

  private Partition find(byte[] record, int number) {
    for (Partition each : partitions) if (each.holds(record, number)) return each;
    int start = RawRecord.topicStart(record);
    byte[] topic = Arrays.copyOfRange(record, start, start + RawRecord.topicLength(record));
    String name = new String(topic, StandardCharsets.UTF_8);
    var out = new Partition(partitioned ? Partitioned.name(name, number) : name, topic, number);
    partitions.add(out);
    return out;
  }

  /** Tells the driver what it was not told yet. */
  public void tell() {
    if (untold == 0) return;
    for (Partition each : partitions) told.add(each.name, each.greatest);
    untold = 0;
  }
}
