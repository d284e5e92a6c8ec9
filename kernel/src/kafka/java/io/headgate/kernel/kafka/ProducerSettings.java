package io.headgate.kernel.kafka;

import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Producers' settings: ours where the user names none, and those that the guarantees rest on. */
final class ProducerSettings {
  /** What brokers allow unless they are told otherwise. */
  private static final String TRANSACTION_TIMEOUT_MS = "900000";

  private static final Map<String, String> DEFAULTS = Map.of(
      // A commit flushes, so waiting for fuller batches costs no time and saves requests.
      ProducerConfig.BATCH_SIZE_CONFIG, Integer.toString(512 << 10),
      ProducerConfig.LINGER_MS_CONFIG, "10",
      ProducerConfig.BUFFER_MEMORY_CONFIG, Integer.toString(32 << 20),
      // How large a record may be is for its topic to say.
      ProducerConfig.MAX_REQUEST_SIZE_CONFIG, Integer.toString(16 << 20),
      ProducerConfig.TRANSACTION_TIMEOUT_CONFIG, TRANSACTION_TIMEOUT_MS);

  private ProducerSettings() {}

  /** Returns a producer whose records are there once they are acknowledged. */
  static KafkaProducer<byte[], byte[]> open(ClientOptions client) {
    return open(client, Map.of());
  }

  static KafkaProducer<byte[], byte[]> openTransactional(ClientOptions client, String id) {
    return open(client, Map.of(ProducerConfig.TRANSACTIONAL_ID_CONFIG, id));
  }

  private static KafkaProducer<byte[], byte[]> open(ClientOptions client, Map<String, String> more) {
    var own = new HashMap<>(more);
    own.put(ProducerConfig.ACKS_CONFIG, "all");
    own.put(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, "true");
    return client.open(ClientOptions.Kind.PRODUCER, DEFAULTS, own, settings -> {
      // An id of the user's would be one for all tasks.
      if (more.isEmpty()) settings.remove(ProducerConfig.TRANSACTIONAL_ID_CONFIG);
      return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    });
  }

  static long transactionTimeoutMs(ClientOptions client) {
    Object given = client.producer().getOrDefault(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG, TRANSACTION_TIMEOUT_MS);
    return Long.parseLong(given.toString().trim());
  }
}
