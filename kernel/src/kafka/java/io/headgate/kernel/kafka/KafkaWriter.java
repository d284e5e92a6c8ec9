package io.headgate.kernel.kafka;

import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.sink.LogWriter;
import io.headgate.kernel.sink.PositionHeader;
import io.headgate.kernel.testing.CrashPoint;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/** Sends one task's rows of one epoch to the topics of their outputs. */
final class KafkaWriter implements LogWriter {
  /** Hears what became of a topic's rows; on the producer's thread. */
  private final class Receipt implements Callback {
    final String topic;
    int largest;

    Receipt(String topic) {
      this.topic = topic;
    }

    @Override public void onCompletion(RecordMetadata place, Exception e) {
      // The first one is the cause: what follows it fails because of it.
      if (e != null && failed == null) failed = new Failed(topic, largest, e);
    }
  }

  /** @param largest the size of the largest record that was sent to the topic until then */
  private record Failed(String topic, int largest, Exception why) {}

  private final Delivery delivery;
  private final PositionHeader position;
  private final Map<Integer, Receipt> receipts = new HashMap<>();
  private boolean sent;
  private volatile Failed failed;

  /** @param topics by the address of the output */
  KafkaWriter(Delivery delivery, PositionHeader position, Map<Integer, String> topics) {
    this.delivery = delivery;
    this.position = position;
    topics.forEach((output, topic) -> receipts.put(output, new Receipt(topic)));
  }

  @Override public void write(int output, byte[] envelope) {
    if (delivery.isDone()) return;
    Receipt receipt = receipts.get(output);
    byte[] key = Envelope.segments(envelope) > 1 ? segment(envelope, 1) : null;
    byte[] value = Envelope.hasValue(envelope) ? segment(envelope, 0) : null;
    var record = new ProducerRecord<>(receipt.topic, key, value);
    byte[] header = position.of(envelope);
    if (header != null) record.headers().add(PositionHeader.NAME, header);
    int size = length(value) + length(header) + length(key);
    if (size > receipt.largest) receipt.largest = size;
    try {
      delivery.producer().send(record, receipt);
    } catch (RuntimeException e) {
      throw failure(e);
    }
    if (failed != null) throw failure(failed.why);
    if (sent) return;
    sent = true;
    CrashPoint.at("in-transaction");
  }

  /** Serializers hand over whole arrays, so a part of one has to be copied. */
  private static byte[] segment(byte[] envelope, int i) {
    int start = Envelope.start(envelope, i);
    return Arrays.copyOfRange(envelope, start, start + Envelope.length(envelope, i));
  }

  private static int length(byte[] bytes) {
    return bytes == null ? 0 : bytes.length;
  }

  @Override public void commit() {
    try {
      if (!delivery.isDone()) {
        delivery.mark();
        delivery.producer().flush();
      }
      if (failed == null) delivery.commit();
    } catch (RuntimeException e) {
      throw failure(e);
    }
    if (failed != null) throw failure(failed.why);
  }

  @Override public void abort() {
    delivery.abandon();
  }

  private RuntimeException failure(Exception thrown) {
    Failed first = failed;
    if (first == null) return delivery.failure(thrown);
    if (!Failures.isTooLarge(first.why)) return delivery.failure(first.why);
    return new KafkaFailure(Failures.TOO_LARGE, "cannot write a record of " + first.largest + " bytes to topic '" + first.topic
        + "': " + first.why.getMessage(), first.why);
  }
}
