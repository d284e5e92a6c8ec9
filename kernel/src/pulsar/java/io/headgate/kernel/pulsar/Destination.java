package io.headgate.kernel.pulsar;

import java.io.Serializable;
import org.apache.pulsar.client.api.HashingScheme;
import org.apache.pulsar.client.impl.Hash;
import org.apache.pulsar.client.impl.JavaStringHash;
import org.apache.pulsar.client.impl.Murmur3Hash32;

/**
 * A topic that is written to, as it was when the query began: a replay must find the same partitions.
 *
 * @param partitions 0 for a topic without
 * @param schema null for one without
 * @param limit how large the topic lets a message be, in bytes; 0 where it is the broker that limits them
 */
record Destination(PulsarTopic topic, int partitions, TopicSchema schema, int limit) implements Serializable {
  /** Returns above how many bytes a row may be refused for its size. */
  int large() {
    return limit == 0 ? ProducerSettings.BATCH_BYTES : limit / 2;
  }

  /** Returns the topic behind each partition. */
  PulsarTopic[] places() {
    if (partitions == 0) return new PulsarTopic[] {topic};
    var out = new PulsarTopic[partitions];
    for (int i = 0; i < partitions; i++) out[i] = topic.partition(i);
    return out;
  }

  /**
   * Returns how a key finds its partition: as with the producers of Pulsar's Java client, so that a key is in one place
   * whoever writes it.
   *
   * <p>Their default is {@code JavaStringHash} (4.0.8, {@code ProducerConfigurationData}), and the option
   * {@code producer.hashingScheme} changes it there as here.
   */
  static Hash hash(Object scheme) {
    return scheme != null && HashingScheme.valueOf(scheme.toString()) == HashingScheme.Murmur3_32Hash
        ? Murmur3Hash32.getInstance() : JavaStringHash.getInstance();
  }
}
