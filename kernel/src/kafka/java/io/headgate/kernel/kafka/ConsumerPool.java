package io.headgate.kernel.kafka;

import io.headgate.kernel.source.IdlePool;

/** Consumers between two batches, one for each group of partitions. */
final class ConsumerPool {
  /**
   * Whose consumer it is.
   *
   * @param run the query's, so that no query finds another's
   */
  record Key(ClientOptions client, String isolation, String run, String source, int group) {}

  private static final IdlePool<Key, RangeConsumer> IDLE =
      new IdlePool<>("headgate-kafka-consumers", key -> new RangeConsumer(key.client(), key.isolation()));

  private ConsumerPool() {}

  static RangeConsumer take(Key key) {
    return IDLE.take(key);
  }

  static void give(Key key, RangeConsumer consumer) {
    IDLE.give(key, consumer);
  }

  /** Closes what a source that has ended kept in this JVM. */
  static void close(String run, String source) {
    IDLE.close(key -> key.run().equals(run) && key.source().equals(source));
  }
}
