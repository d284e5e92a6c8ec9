package io.headgate.kernel.pulsar;

import io.headgate.kernel.pulsar.PulsarOffset.Standpoint;
import io.headgate.kernel.pulsar.TopicCatalog.Topic;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.connector.read.InputPartition;

/** What one task reads: a range of entries of each of some partitions. */
record PulsarSplit(List<Range> ranges) implements InputPartition {
  /** How much earlier a new reader begins, so that a message in several chunks that ends in its range is whole. */
  private static final long WARM_UP = 64;

  /**
   * @param topic as users know it
   * @param plain the topic that holds the partition
   * @param from where the range begins, as it was logged: the end of the one before
   * @param to where it ends, likewise
   * @param open where a reader that does not stand at {@code from} begins; what it brings before the range is dropped
   * @param runs the entries themselves
   */
  record Range(PulsarTopic topic, PulsarTopic plain, int partition, Place from, Place to, Place open, List<Run> runs)
      implements Serializable {}

  /**
   * Returns the splits of a batch. How partitions are spread over tasks follows from its two positions alone: a replay reads
   * the same rows in the same tasks, also where a task has nothing left to read.
   *
   * <p>What the start does not know is not read: the batch after this one begins with it where the end says.
   *
   * @param start as it was logged
   * @param at the same position as it lies today
   */
  static List<PulsarSplit> plan(PulsarOffset start, PulsarOffset at, PulsarOffset end, int splits, Map<String, Topic> today) {
    var groups = new TreeMap<Integer, List<Range>>();
    end.topics.forEach((name, to) -> {
      Standpoint from = start.topics.get(name);
      for (int i = 0; i < to.next().size(); i++) {
        if (from == null || !from.knows(to.partitioned(), i) || from.next().get(i).compareTo(to.next().get(i)) >= 0) continue;
        int group = ((name.hashCode() & Integer.MAX_VALUE) % splits + i) % splits;
        List<Range> ranges = groups.computeIfAbsent(group, g -> new ArrayList<>());
        Topic topic = today.get(name);
        if (topic == null || topic.partitioned() != to.partitioned() || i >= topic.partitions().size()) continue;
        Range range = range(topic, i, from.next().get(i), at.topics.get(name).next().get(i), to.next().get(i));
        if (!range.runs.isEmpty()) ranges.add(range);
      }
    });
    return groups.values().stream().map(ranges -> new PulsarSplit(List.copyOf(ranges))).toList();
  }

  private static Range range(Topic topic, int partition, Place from, Place at, Place to) {
    Ledgers ledgers = topic.partitions().get(partition);
    return new Range(topic.name(), topic.plain(partition), partition, from, to,
        ledgers.minus(at, WARM_UP), List.copyOf(ledgers.runs(at, to)));
  }
}
