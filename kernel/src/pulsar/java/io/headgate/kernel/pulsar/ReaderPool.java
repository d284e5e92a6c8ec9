package io.headgate.kernel.pulsar;

import io.headgate.kernel.source.IdlePool;

/** Readers between two batches, one for each partition. */
final class ReaderPool {
  /**
   * Whose reader it is.
   *
   * @param run the query's, so that no query finds another's
   * @param reader what it is called
   */
  record Key(ClientOptions client, String run, String source, String reader, PulsarTopic plain) {}

  private static final IdlePool<Key, RangeReader> IDLE =
      new IdlePool<>("headgate-pulsar-readers", key -> new RangeReader(key.client(), key.plain(), key.reader()));

  private ReaderPool() {}

  static RangeReader take(Key key) {
    return IDLE.take(key);
  }

  static void give(Key key, RangeReader reader) {
    IDLE.give(key, reader);
  }

  /** Closes what a source that has ended kept in this JVM. */
  static void close(String run, String source) {
    IDLE.close(key -> key.run().equals(run) && key.source().equals(source));
  }
}
