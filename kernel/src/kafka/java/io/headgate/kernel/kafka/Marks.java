package io.headgate.kernel.kafka;

import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsOptions;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InterruptException;

/**
 * Marks of epochs on a cluster, each written in the very transaction whose rows it speaks of, and claims of queries.
 *
 * <p>A claim is the committed offset of a group that is named as the lineage, and says which query may write. A mark is the committed offset of a group that is named as the transactional id. Brokers forget the offsets of a group
 * that was idle for a week, so the mark is also a record of the compacted topic {@value #TOPIC}, see {@link MarkTopic}.
 */
final class Marks {
  static final String TOPIC = "headgate-epochs";
  static final TopicPartition PLACE = new TopicPartition(TOPIC, 0);

  /** Whose claim a lineage has, as one query sees it. */
  enum Claim { MINE, OTHERS, GONE }

  /** Format 2: the topic of marks has a record of the lineage. The offset is the time of the claim. */
  private static final String OWNER = "{\"format\":2,\"run\":\"";
  private static final String OWNER_BEFORE = "{\"format\":1,\"run\":\"";
  /** A claim of no query, which keeps every one from writing in transactions. */
  static final String NOBODY = "none";

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
        lineage.group(), Map.of(PLACE, new OffsetAndMetadata(System.currentTimeMillis(), owner(run)))).all());
  }

  /** Keeps a query's claim from expiring; one that is gone, or of another query, is left alone. */
  static void renew(Admin admin, Lineage lineage, String run) {
    if (claim(admin, lineage).filter(owner(run)::equals).isPresent()) claim(admin, lineage, run);
  }

  static Claim whose(Admin admin, Lineage lineage, String run) {
    return claim(admin, lineage).map(found -> found.equals(owner(run)) ? Claim.MINE : Claim.OTHERS).orElse(Claim.GONE);
  }

  /** Returns whether a query has claimed the lineage before, in this release or in the one before. */
  static boolean isClaimed(Admin admin, Lineage lineage) {
    return hasClaim(admin, lineage, OWNER) || hasClaim(admin, lineage, OWNER_BEFORE);
  }

  /** Returns whether a query has claimed the lineage that put a record of it into the topic of marks. */
  static boolean isNoted(Admin admin, Lineage lineage) {
    return hasClaim(admin, lineage, OWNER);
  }

  private static boolean hasClaim(Admin admin, Lineage lineage, String head) {
    return claim(admin, lineage).filter(found -> found.startsWith(head) && !found.startsWith(head + NOBODY)).isPresent();
  }

  /** Puts a record of a lineage into the topic of marks, where it stays when the group has expired. */
  static void note(ClientOptions client, Lineage lineage, String run) {
    try (var producer = ProducerSettings.open(client)) {
      producer.send(new ProducerRecord<>(TOPIC, 0, bytes(lineage.group()), bytes(owner(run)))).get();
    } catch (ExecutionException e) {
      throw e.getCause() instanceof RuntimeException r ? r : new KafkaException(e.getCause());
    } catch (InterruptedException e) {
      throw new InterruptException(e);
    }
  }

  private static Optional<String> claim(Admin admin, Lineage lineage) {
    return Optional.ofNullable(offsets(admin, List.of(lineage.group())).get(lineage.group())).map(OffsetAndMetadata::metadata);
  }

  private static String owner(String run) {
    return OWNER + run + "\"}";
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
