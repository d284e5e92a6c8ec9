package io.headgate.kernel.kafka;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.TimeoutException;

/** The topic of all marks on a cluster: the proof that is left where a group's offset has expired. */
final class MarkTopic {
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(60);
  private static final long LOOK_EVERY_MS = 100;

  private MarkTopic() {}

  static NewTopic wanted() {
    // The newest mark of an id is all that counts; small segments keep what has to be read small.
    return new NewTopic(Marks.TOPIC, Optional.of(1), Optional.empty()).configs(Map.of(
        "cleanup.policy", "compact", "segment.bytes", "16777216", "min.cleanable.dirty.ratio", "0.1"));
  }

  /**
   * Returns whether the topic was there before the last epoch that it holds of a lineage: it has what {@link Marks#note} wrote,
   * or marks of two epochs. A topic that was deleted and made again has not.
   */
  static boolean remembers(ClientOptions client, Lineage lineage) {
    var epochs = new HashSet<Long>();
    var noted = new boolean[1];
    // Also what was not committed: it was written, and the topic was there then.
    try (var every = open(client, "read_uncommitted")) {
      scan(every, (id, record) -> {
        noted[0] |= id.equals(lineage.group());
        if (lineage.has(id)) epochs.add(Mark.parse(text(record.value())).epoch());
      });
    }
    return noted[0] || epochs.size() > 1;
  }

  /** Returns the newest committed mark of every task of a lineage; none of its tasks may be writing. */
  static Map<String, Mark> read(ClientOptions client, Lineage lineage) {
    var last = new long[] {-1};
    try (var every = open(client, "read_uncommitted")) {
      scan(every, (id, record) -> {
        if (lineage.has(id)) last[0] = record.offset();
      });
    }
    if (last[0] < 0) return Map.of();
    try (var committed = open(client, "read_committed")) {
      awaitDecided(committed, last[0]);
      var out = new HashMap<String, Mark>();
      scan(committed, (id, record) -> {
        if (lineage.has(id)) out.put(id, Mark.parse(text(record.value())));
      });
      return out;
    }
  }

  private static Consumer<ByteBuffer, ByteBuffer> open(ClientOptions client, String isolation) {
    var consumer = client.openConsumer(Map.of(ConsumerConfig.ISOLATION_LEVEL_CONFIG, isolation));
    consumer.assign(List.of(Marks.PLACE));
    return consumer;
  }

  /** Waits until what lies at an offset is committed or aborted: a transaction of any job may be open before it. */
  private static void awaitDecided(Consumer<ByteBuffer, ByteBuffer> committed, long offset) {
    long since = System.nanoTime();
    while (end(committed) <= offset) {
      if (System.nanoTime() - since > PATIENCE_NANOS)
        throw new TimeoutException("topic '" + Marks.TOPIC + "' has the marks of written batches, and an open transaction of"
            + " another job has blocked its readers for 60 s");
      try {
        Thread.sleep(LOOK_EVERY_MS);
      } catch (InterruptedException e) {
        throw new InterruptException(e);
      }
    }
  }

  private static long end(Consumer<ByteBuffer, ByteBuffer> consumer) {
    return consumer.endOffsets(List.of(Marks.PLACE)).get(Marks.PLACE);
  }

  /** Hands over the records with their keys, from the topic's start to where it ends now. */
  private static void scan(
      Consumer<ByteBuffer, ByteBuffer> consumer, BiConsumer<String, ConsumerRecord<ByteBuffer, ByteBuffer>> each) {
    long end = end(consumer);
    long since = System.nanoTime();
    consumer.seekToBeginning(List.of(Marks.PLACE));
    while (consumer.position(Marks.PLACE) < end) {
      var found = consumer.poll(Duration.ofMillis(LOOK_EVERY_MS));
      if (!found.isEmpty()) since = System.nanoTime();
      if (System.nanoTime() - since > PATIENCE_NANOS)
        throw new TimeoutException("no record of topic '" + Marks.TOPIC + "' came for 60 s");
      for (var record : found)
        if (record.key() != null && record.value() != null) each.accept(text(record.key()), record);
    }
  }

  private static String text(ByteBuffer bytes) {
    return StandardCharsets.UTF_8.decode(bytes.duplicate()).toString();
  }
}
