package io.headgate.kernel.pulsar;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.impl.Hash;

/** Producers' settings: ours where the user names none, and those that the guarantees rest on. */
final class ProducerSettings {
  /** A commit flushes, so waiting for fuller batches costs no time, and saves entries for the broker and for readers. */
  static final int BATCH_BYTES = 256 << 10;

  private static final int BATCH_ROWS = 4096;
  /** Clients count the bytes of values alone, and drop a batch that has become too large with what stands beside them. */
  private static final int MOST_BYTES = 1 << 20;
  private static final int MOST_ROWS = 8192;
  private static final int BATCH_WAIT_MS = 10;
  /** Enough for a broker to start again. */
  private static final long PATIENCE_MS = 120_000;

  private final PulsarClient client;
  private final Map<String, Object> given;

  ProducerSettings(ClientOptions options) {
    client = Clients.of(options);
    given = options.producer();
  }

  Hash hash() {
    return Destination.hash(given.get("hashingScheme"));
  }

  /** Returns how long a broker may acknowledge nothing while rows wait for it. */
  long patienceNanos() {
    Object limit = given.getOrDefault("sendTimeoutMs", PATIENCE_MS);
    long ms = Long.parseLong(limit.toString().trim());
    // To Pulsar's clients, none is for ever.
    return ms == 0 ? Long.MAX_VALUE : TimeUnit.MILLISECONDS.toNanos(ms);
  }

  /** @param name null for a producer of no name of its own */
  ProducerBuilder<byte[]> builder(Destination destination, PulsarTopic place, String name) {
    var settings = new HashMap<String, Object>();
    settings.put("batchingMaxBytes", BATCH_BYTES);
    settings.put("batchingMaxMessages", BATCH_ROWS);
    settings.put("batchingMaxPublishDelayMicros", TimeUnit.MILLISECONDS.toMicros(BATCH_WAIT_MS));
    settings.putAll(given);
    settings.put("batchingMaxBytes", atMost(MOST_BYTES, settings, "batchingMaxBytes"));
    settings.put("batchingMaxMessages", atMost(MOST_ROWS, settings, "batchingMaxMessages"));
    // A topic's own limit is one for whole batches, and no client knows it.
    if (destination.limit() > 0) settings.put("batchingEnabled", false);
    // Rows that were given up while later ones went out would be doubles ever after: the client gives up none by itself.
    settings.put("sendTimeoutMs", 0);
    settings.put("blockIfQueueFull", true);
    // What waits is limited by its outbox, which gives up in time.
    settings.put("maxPendingMessages", 0);
    settings.put("maxPendingMessagesAcrossPartitions", 0);
    // What a broker knows of a producer must come from the broker, and one name must not serve two tasks.
    settings.remove("initialSequenceId");
    settings.remove("producerName");
    settings.remove("accessMode");
    settings.remove("topicName");
    Schema<byte[]> schema = destination.schema() == null ? Schema.BYTES : destination.schema().open();
    ProducerBuilder<byte[]> builder = client.newProducer(schema).loadConf(settings).topic(place.full());
    return name == null ? builder : builder.producerName(name);
  }

  private static int atMost(int most, Map<String, Object> settings, String name) {
    return Math.min(most, Integer.parseInt(settings.get(name).toString().trim()));
  }
}
