package io.headgate.kernel.pulsar;

import io.headgate.kernel.source.LagProbe;
import java.time.OffsetDateTime;
import java.util.HashMap;
import java.util.Map;

/** Asks the admin service when the first unread entry of each partition was published. */
final class UnreadTimes implements LagProbe.Look<PulsarTopic, Place> {
  private static final String PUBLISHED = "X-Pulsar-publish-time";

  private final AdminApi admin;

  UnreadTimes(ClientOptions client) {
    admin = AdminApi.shared(client);
  }

  @Override public Map<PulsarTopic, Long> times(Map<PulsarTopic, Place> wanted) {
    var out = new HashMap<PulsarTopic, Long>();
    wanted.forEach((plain, at) -> {
      String path = "persistent/" + plain.path() + "/ledger/" + at.ledger() + "/entry/" + at.entry();
      admin.findHeaders(path).flatMap(headers -> headers.firstValue(PUBLISHED))
          .ifPresent(text -> out.put(plain, OffsetDateTime.parse(text).toInstant().toEpochMilli()));
    });
    return out;
  }

  @Override public void close() {}
}
