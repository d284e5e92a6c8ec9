package io.headgate.kernel.kafka;

import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsOptions;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Marks of epochs on a cluster, each written in the very transaction whose rows it speaks of.
 *
 * <p>A mark is the committed offset of a group that is named as the transactional id. Brokers forget the offsets of a group
 * that was idle for a week, so the mark is also a record of the compacted topic {@value #TOPIC}, see {@link MarkTopic}.
 */
final class Marks {
  static final String TOPIC = "headgate-epochs";
  static final TopicPartition PLACE = new TopicPartition(TOPIC, 0);

  private static final String OWNER = "{\"format\":1,\"run\":\"%s\"}";

  private Marks() {}

  /**
   * Puts a mark into the transaction that is open.
   *
   * <p>The client (4.3.1) has no other way to name a group than the constructor that it means to remove.
   */
  @SuppressWarnings("removal")
  static void write(KafkaProducer<byte[], byte[]> producer, String id, Mark mark) {
    producer.sendOffsetsToTransaction(
        Map.of(PLACE, new OffsetAndMetadata(mark.epoch(), mark.json())), new ConsumerGroupMetadata(id));
    producer.send(new ProducerRecord<>(TOPIC, 0, bytes(id), bytes(mark.json())));
  }

  /** Returns the marks that the groups hold; an id without one is not there. */
  static Map<String, Mark> read(Admin admin, Collection<String> ids) {
    var out = new HashMap<String, Mark>();
    for (var each : offsets(admin, ids).entrySet()) out.put(each.getKey(), Mark.parse(each.getValue().metadata()));
    return out;
  }

  /** Names the query that may write from now on; tasks of any other give way. */
  static void claim(Admin admin, Lineage lineage, String run) {
    Reply.of(admin.alterConsumerGroupOffsets(
        lineage.group(), Map.of(PLACE, new OffsetAndMetadata(0, String.format(OWNER, run)))).all());
  }

  /** Returns whether another query has claimed the lineage since. */
  static boolean isReplaced(Admin admin, Lineage lineage, String run) {
    OffsetAndMetadata found = offsets(admin, List.of(lineage.group())).get(lineage.group());
    return found != null && !found.metadata().equals(String.format(OWNER, run));
  }

  private static Map<String, OffsetAndMetadata> offsets(Admin admin, Collection<String> groups) {
    var asked = new HashMap<String, ListConsumerGroupOffsetsSpec>();
    for (String group : groups) asked.put(group, new ListConsumerGroupOffsetsSpec().topicPartitions(List.of(PLACE)));
    // Stable: a transaction that is being decided must be decided before it is looked at.
    var found = admin.listConsumerGroupOffsets(asked, new ListConsumerGroupOffsetsOptions().requireStable(true));
    var out = new HashMap<String, OffsetAndMetadata>();
    for (String group : groups)
      Optional.ofNullable(Reply.of(found.partitionsToOffsetAndMetadata(group)).get(PLACE)).ifPresent(o -> out.put(group, o));
    return out;
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
