package io.headgate.kernel.pulsar;

import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.sink.PositionHeader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.pulsar.client.api.TypedMessageBuilder;
import org.apache.pulsar.client.impl.Hash;

/** Makes messages of rows and says where they belong; serves one thread. */
final class Messages {
  private final PositionHeader position;
  private final Hash hash;

  Messages(PositionHeader position, Hash hash) {
    this.position = position;
    this.hash = hash;
  }

  /**
   * Returns which of a topic's partitions a row goes to: that of its key.
   *
   * @param turn decides where there is no key
   */
  int route(byte[] envelope, int partitions, int turn) {
    if (partitions < 2) return 0;
    return (Envelope.segments(envelope) > 1 ? hash.makeHash(segment(envelope, 1)) : turn) % partitions;
  }

  TypedMessageBuilder<byte[]> of(Outlet outlet, byte[] envelope) {
    TypedMessageBuilder<byte[]> message = outlet.producer().newMessage().value(segment(envelope, 0));
    if (Envelope.segments(envelope) > 1) message.key(text(segment(envelope, 1)));
    byte[] header = position.of(envelope);
    return header == null ? message : message.property(PositionHeader.NAME, text(header));
  }

  private static byte[] segment(byte[] envelope, int i) {
    int start = Envelope.start(envelope, i);
    return Arrays.copyOfRange(envelope, start, start + Envelope.length(envelope, i));
  }

  private static String text(byte[] utf8) {
    return new String(utf8, StandardCharsets.UTF_8);
  }
}
