package io.headgate.kernel.kafka;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Finds out how old the oldest record is that was not read, on a thread and with a small consumer of its own.
 *
 * <p>Nobody waits for it: it looks at most every 2 s, only while something is unread, and what it does not know yet is not
 * told.
 */
final class LagProbe implements AutoCloseable {
  private static final long EVERY_MS = 2_000;
  private static final long AFTER_FAILURE_MS = 15_000;
  private static final Duration POLL = Duration.ofMillis(200);
  private static final int POLLS = 10;
  private static final Map<String, String> SMALL = Map.of(
      "max.partition.fetch.bytes", "16384", "fetch.max.bytes", "1048576", "receive.buffer.bytes", "65536",
      "max.poll.records", "1000");

  private final SourceOptions options;
  /** What is unread, by partition the first offset; empty where all is read. */
  private Map<TopicPartition, Long> unread = Map.of();
  private Map<TopicPartition, Long> timestamps = Map.of();
  private Thread thread;
  private boolean closed;

  LagProbe(SourceOptions options) {
    this.options = options;
  }

  /** Tells where reading stands, and returns at once the oldest unread record's time, if it is known. */
  synchronized OptionalLong oldest(Map<TopicPartition, Long> unread) {
    this.unread = unread;
    if (!unread.isEmpty() && thread == null && !closed) {
      thread = new Thread(this::run, "headgate-kafka-lag");
      thread.setDaemon(true);
      thread.start();
    }
    return timestamps.entrySet().stream()
        .filter(each -> unread.containsKey(each.getKey())).mapToLong(Map.Entry::getValue).min();
  }

  private void run() {
    Consumer<ByteBuffer, ByteBuffer> consumer = null;
    long pause = 0;
    try {
      for (Map<TopicPartition, Long> wanted = await(pause); wanted != null; wanted = await(pause)) {
        try {
          if (consumer == null) consumer = open();
          publish(look(consumer, wanted));
          pause = EVERY_MS;
        } catch (RuntimeException e) {
          // Whatever it is, reading itself meets it too, and tells.
          close(consumer);
          consumer = null;
          publish(Map.of());
          pause = AFTER_FAILURE_MS;
        }
      }
    } finally {
      close(consumer);
    }
  }

  private Consumer<ByteBuffer, ByteBuffer> open() {
    var own = new HashMap<>(SMALL);
    own.put("isolation.level", options.isolation());
    return options.client().openConsumer(own);
  }

  /** Waits for the pause to pass and for something to be unread; returns null where the source has ended. */
  private synchronized Map<TopicPartition, Long> await(long pause) {
    long until = System.currentTimeMillis() + pause;
    while (!closed && (unread.isEmpty() || System.currentTimeMillis() < until)) {
      try {
        wait(unread.isEmpty() ? EVERY_MS : Math.max(1, until - System.currentTimeMillis()));
      } catch (InterruptedException e) {
        return null;
      }
    }
    return closed ? null : unread;
  }

  private Map<TopicPartition, Long> look(Consumer<ByteBuffer, ByteBuffer> consumer, Map<TopicPartition, Long> wanted) {
    consumer.assign(wanted.keySet());
    consumer.resume(wanted.keySet());
    wanted.forEach(consumer::seek);
    var found = new HashMap<TopicPartition, Long>();
    Set<TopicPartition> left = new HashSet<>(wanted.keySet());
    for (int i = 0; i < POLLS && !left.isEmpty() && !isClosed(); i++) {
      var records = consumer.poll(POLL);
      for (TopicPartition place : records.partitions()) {
        ConsumerRecord<ByteBuffer, ByteBuffer> first = records.records(place).get(0);
        if (left.remove(place) && first.timestamp() >= 0) found.put(place, first.timestamp());
      }
      consumer.pause(records.partitions());
    }
    return found;
  }

  private synchronized boolean isClosed() {
    return closed;
  }

  private synchronized void publish(Map<TopicPartition, Long> found) {
    timestamps = found;
  }

  private static void close(Consumer<?, ?> consumer) {
    if (consumer != null) consumer.close(CloseOptions.timeout(Duration.ZERO));
  }

  @Override public synchronized void close() {
    closed = true;
    notifyAll();
  }
}
