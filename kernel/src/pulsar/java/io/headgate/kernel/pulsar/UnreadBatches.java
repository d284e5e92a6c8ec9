package io.headgate.kernel.pulsar;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalDouble;

/** Asks the admin service how many messages some unread entries hold. */
final class UnreadBatches {
  /** Of each partition; the first batch of a producer is often smaller than the next ones. */
  private static final int LOOKS = 4;
  private static final int MOST_LOOKS = 64;
  private static final String MESSAGES = "X-Pulsar-num-batch-message";

  private final AdminApi admin;
  private final List<String> paths = new ArrayList<>();

  UnreadBatches(ClientOptions client) {
    admin = AdminApi.shared(client);
  }

  /** Adds a partition's last entries, so many of them, as ones to look at. */
  void add(PulsarTopic plain, Ledgers ledgers, long entries) {
    for (int i = 0; i < Math.min(LOOKS, entries) && paths.size() < MOST_LOOKS; i++) {
      Place at = ledgers.minus(ledgers.end(), entries - i * entries / LOOKS);
      paths.add("persistent/" + plain.path() + "/ledger/" + at.ledger() + "/entry/" + at.entry());
    }
  }

  /** Returns the mean number of messages of an entry; empty where nothing is found or the service does not answer. */
  OptionalDouble mean() {
    try {
      return admin.findAllHeaders(paths).stream().flatMap(headers -> headers.stream())
          .mapToLong(headers -> headers.firstValueAsLong(MESSAGES).orElse(1)).average();
    } catch (PulsarFailure e) {
      // The lag only informs; reading meets the failure too, and reports it.
      return OptionalDouble.empty();
    }
  }
}
