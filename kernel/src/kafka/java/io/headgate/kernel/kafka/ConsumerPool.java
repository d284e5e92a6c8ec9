package io.headgate.kernel.kafka;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;

/**
 * Consumers between two batches, one for each group of partitions; those nobody asks for are closed after some minutes.
 *
 * <p>One pool serves all queries of the JVM. A consumer is with one task or in here, never both.
 */
final class ConsumerPool {
  /**
   * Whose consumer it is.
   *
   * @param run the query's, so that no query finds another's
   */
  record Key(ClientOptions client, String isolation, String run, String source, int group) {}

  private record Idle(RangeConsumer consumer, long since) {}

  private static final long KEPT_NANOS = 5 * 60 * 1_000_000_000L;
  private static final long LOOK_MS = 30_000;
  private static final Map<Key, Idle> IDLE = new HashMap<>();
  private static Thread closer;

  private ConsumerPool() {}

  /** Returns the consumer of the batch before, or a new one. */
  static RangeConsumer take(Key key) {
    Idle found;
    synchronized (IDLE) {
      found = IDLE.remove(key);
    }
    return found == null ? new RangeConsumer(key.client(), key.isolation()) : found.consumer();
  }

  /** Keeps a consumer for the next batch. */
  static void give(Key key, RangeConsumer consumer) {
    Idle before;
    synchronized (IDLE) {
      before = IDLE.put(key, new Idle(consumer, System.nanoTime()));
      if (closer == null) {
        closer = new Thread(ConsumerPool::closeUnused, "headgate-kafka-consumers");
        closer.setDaemon(true);
        closer.start();
      }
    }
    // Two tries of one task ran at a time.
    if (before != null) before.consumer().close();
  }

  /** Closes what a source that has ended kept in this JVM. */
  static void close(String run, String source) {
    close(each -> each.getKey().run().equals(run) && each.getKey().source().equals(source));
  }

  private static void close(Predicate<Map.Entry<Key, Idle>> which) {
    List<RangeConsumer> unused = new ArrayList<>();
    synchronized (IDLE) {
      IDLE.entrySet().removeIf(each -> which.test(each) && unused.add(each.getValue().consumer()));
    }
    unused.forEach(RangeConsumer::close);
  }

  private static void closeUnused() {
    for (;;) {
      try {
        Thread.sleep(LOOK_MS);
      } catch (InterruptedException e) {
        // Nobody interrupts this thread; if somebody does, it looks at once.
      }
      long now = System.nanoTime();
      close(each -> now - each.getValue().since() > KEPT_NANOS);
      synchronized (IDLE) {
        if (IDLE.isEmpty()) {
          closer = null;
          return;
        }
      }
    }
  }
}
