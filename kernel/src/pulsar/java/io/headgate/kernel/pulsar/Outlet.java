package io.headgate.kernel.pulsar;

import org.apache.pulsar.client.api.Producer;

/**
 * A producer of one task on one plain topic or partition.
 *
 * @param known the highest number that the broker had from its name when it was opened; -1 for none
 */
record Outlet(Destination destination, PulsarTopic place, Producer<byte[]> producer, long known) {
  /**
   * Returns whether the broker may have a row already, which then has to be sent by itself.
   *
   * <p>A broker judges a batch by its first number alone, and drops one that begins with a double whole, with all that is new
   * in it. The Java client keeps doubles apart from new rows only as far as the same producer has sent them before: it does
   * not use for that what the broker tells it when it connects (4.0.8, {@code ProducerImpl.lastSequenceIdPushed}). And what
   * the broker tells may still be on its way to disk, so that such a row must be sent and cannot be left out.
   */
  boolean mayHave(long id) {
    return id <= known;
  }

  /** Sends what waits for a fuller batch. */
  void flush() {
    producer.flushAsync();
  }
}
