package io.headgate.kernel.kafka;

import io.headgate.kernel.testing.CrashPoint;
import org.apache.kafka.clients.producer.KafkaProducer;

/** Rows that are there once brokers have acknowledged them, and a second time after a replay. */
final class AtLeastOnce implements Delivery {
  private final String servers;
  private TaskProducer held;

  private AtLeastOnce(TaskProducer held, String servers) {
    this.held = held;
    this.servers = servers;
  }

  static AtLeastOnce open(TaskProducer.Slot slot, ClientOptions client) {
    TaskProducer kept = TaskProducer.take(slot, TaskProducer.ANY);
    if (kept == null) kept = new TaskProducer(slot, ProducerSettings.open(client));
    return new AtLeastOnce(kept, client.servers());
  }

  @Override public boolean isDone() { return false; }

  @Override public KafkaProducer<byte[], byte[]> producer() { return held.producer; }

  @Override public void mark() {}

  @Override public void commit() {
    CrashPoint.at("task-committed");
    held.give(TaskProducer.ANY);
    held = null;
  }

  @Override public void abandon() {
    if (held != null) held.close();
    held = null;
  }

  @Override public RuntimeException failure(Throwable thrown) {
    return Failures.of(thrown, servers, "write rows");
  }
}
