package io.headgate.kernel.kafka;

import io.headgate.kernel.kafka.KafkaOffset.Place;
import io.headgate.kernel.kafka.TopicCatalog.Topic;
import io.headgate.kernel.source.Finding;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.spark.sql.connector.read.InputPartition;

/**
 * What one task reads: a range of offsets of each of some partitions.
 *
 * @param group the partitions that are read together, batch after batch, by one consumer
 */
record KafkaSplit(int group, List<Range> ranges) implements InputPartition {
  /**
   * @param id Kafka's id of the topic
   * @param from the first offset
   * @param to the offset behind the last; there need not be a record at either
   */
  record Range(String topic, String id, int partition, long from, long to) implements Serializable {
    TopicPartition place() {
      return new TopicPartition(topic, partition);
    }

    /** Returns the name of the partition as one ordered sequence, of this topic and none of the same name. */
    int lane() {
      return (31 * id.hashCode() + partition) & Integer.MAX_VALUE;
    }
  }

  /**
   * Returns this split without what is no more, and tells of that; all that is there of its records is in it.
   *
   * <p>A batch that was logged may be read again long after.
   */
  KafkaSplit left(Map<String, Topic> today, List<Finding> findings) {
    var left = new ArrayList<Range>();
    for (Range range : ranges) {
      Topic topic = today.get(range.topic);
      if (topic == null || !topic.id().equals(range.id)) {
        findings.add(new Finding(Finding.Kind.DATA_LOST, range.topic, "topic '" + range.topic
            + "' was deleted or recreated, with the records of an unfinished batch that must be read again"));
        continue;
      }
      long begin = topic.begins()[range.partition];
      if (range.from < begin) findings.add(Standing.late(range.topic, range.partition, range.from, Math.min(begin, range.to)));
      if (begin < range.to) left.add(new Range(range.topic, range.id, range.partition, Math.max(begin, range.from), range.to));
    }
    return new KafkaSplit(group, left);
  }

  /**
   * Returns the splits of a batch, which follow from its two positions alone: a replay reads the same rows in the same tasks.
   *
   * <p>What the start does not know is not read: the batch after this one begins with it where the end says.
   */
  static List<KafkaSplit> plan(KafkaOffset start, KafkaOffset end, int splits) {
    var groups = new TreeMap<Integer, List<Range>>();
    end.topics.forEach((name, place) -> {
      Place from = start.topics.get(name);
      for (int i = 0; i < place.next().length; i++) {
        if (from == null || !from.knows(place.id(), i) || from.next()[i] >= place.next()[i]) continue;
        int group = ((name.hashCode() & Integer.MAX_VALUE) % splits + i) % splits;
        groups.computeIfAbsent(group, g -> new ArrayList<>())
            .add(new Range(name, place.id(), i, from.next()[i], place.next()[i]));
      }
    });
    var out = new ArrayList<KafkaSplit>();
    groups.forEach((group, ranges) -> out.add(new KafkaSplit(group, ranges)));
    return out;
  }
}
