package io.headgate.kernel.kafka;

import org.apache.kafka.clients.producer.KafkaProducer;

/** What stands behind one task's rows of one epoch; serves one thread. */
interface Delivery {
  /** Returns whether an earlier try has committed the rows: then none is to be sent. */
  boolean isDone();

  KafkaProducer<byte[], byte[]> producer();

  /** Sends what has to go along with the rows. */
  void mark();

  /** Makes rows visible that brokers have all acknowledged, and keeps the producer for the task's next epoch. */
  void commit();

  /** Gives up what was not committed; does nothing after a commit, or the second time. */
  void abandon();

  /** Returns what to throw for something that a client threw. */
  RuntimeException failure(Throwable thrown);
}
