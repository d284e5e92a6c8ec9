package io.headgate.kernel.kafka;

import io.headgate.kernel.source.LagProbe;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** Reads the first unread record of each partition with a small consumer. */
final class OldestUnread implements LagProbe.Look<TopicPartition, Long> {
  private static final Duration POLL = Duration.ofMillis(200);
  private static final int POLLS = 10;
  private static final Map<String, String> SMALL = Map.of(
      "max.partition.fetch.bytes", "16384", "fetch.max.bytes", "1048576", "receive.buffer.bytes", "65536",
      "max.poll.records", "1000");

  private final Consumer<ByteBuffer, ByteBuffer> consumer;

  OldestUnread(SourceOptions options) {
    var own = new HashMap<>(SMALL);
    own.put("isolation.level", options.isolation());
    consumer = options.client().openConsumer(own);
  }

  @Override public Map<TopicPartition, Long> times(Map<TopicPartition, Long> wanted) {
    consumer.assign(wanted.keySet());
    consumer.resume(wanted.keySet());
    wanted.forEach(consumer::seek);
    var found = new HashMap<TopicPartition, Long>();
    Set<TopicPartition> left = new HashSet<>(wanted.keySet());
    for (int i = 0; i < POLLS && !left.isEmpty(); i++) {
      var records = consumer.poll(POLL);
      for (TopicPartition place : records.partitions()) {
        ConsumerRecord<ByteBuffer, ByteBuffer> first = records.records(place).get(0);
        if (left.remove(place) && first.timestamp() >= 0) found.put(place, first.timestamp());
      }
      consumer.pause(records.partitions());
    }
    return found;
  }

  @Override public void close() {
    consumer.close(CloseOptions.timeout(Duration.ZERO));
  }
}
