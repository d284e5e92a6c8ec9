package io.headgate.kernel.pulsar;

import io.headgate.kernel.sink.PositionHeader;
import java.nio.charset.StandardCharsets;
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
  int route(OutputRow row, int partitions, int turn) {
    if (partitions < 2) return 0;
    return (row.hasKey() ? hash.makeHash(row.keyBytes()) : turn) % partitions;
  }

  TypedMessageBuilder<byte[]> of(Outlet outlet, OutputRow row) {
    TypedMessageBuilder<byte[]> message = outlet.producer().newMessage().value(row.valueBytes());
    if (row.hasKey()) message.key(row.keyText());
    byte[] header = position.of(row.source(), row.partition(), row.offset(), row.ordinal());
    return header == null ? message : message.property(PositionHeader.NAME, new String(header, StandardCharsets.UTF_8));
  }
}
