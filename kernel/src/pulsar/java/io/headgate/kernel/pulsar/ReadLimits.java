package io.headgate.kernel.pulsar;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * How far readers are given entries: a transaction that is open hides its entries, and all that follow its first.
 *
 * <p>Where a cluster has no transactions, or the user may not ask for them, nothing is known to be hidden; a task that meets a
 * hidden entry then waits for it.
 */
final class ReadLimits {
  private static final long ASK_AGAIN_NANOS = 30_000_000_000L;
  /** How often a broker that has only just loaded a topic is asked again. */
  private static final int TRIES = 40;
  private static final long REST_MS = 250;
  private static final Set<String> KNOWS = Set.of("Ready", "NoSnapshot");

  private final AdminApi admin;
  private long offAt;
  private boolean off;

  ReadLimits(AdminApi admin) {
    this.admin = admin;
  }

  /** Returns the place behind the last entry that readers are given, by partition. */
  List<Place> of(List<PulsarTopic> plain) {
    if (off && System.nanoTime() - offAt < ASK_AGAIN_NANOS) return plain.stream().map(each -> Place.NO_LIMIT).toList();
    List<String> paths = plain.stream().map(each -> "v3/transactions/transactionBufferStats/" + each.path()).toList();
    List<Optional<JsonNode>> found = admin.findAll(paths);
    for (int i = 0; i < TRIES && found.stream().flatMap(Optional::stream).anyMatch(ReadLimits::isLoading); i++) {
      rest();
      found = admin.findAll(paths);
    }
    off = found.stream().allMatch(Optional::isEmpty);
    offAt = System.nanoTime();
    return found.stream().map(each -> each.map(ReadLimits::limit).orElse(Place.NO_LIMIT)).toList();
  }

  private static boolean isLoading(JsonNode stats) {
    return stats.has("state") && !KNOWS.contains(stats.get("state").asText());
  }

  private static Place limit(JsonNode stats) {
    String last = stats.path("maxReadPosition").asText("");
    return last.isEmpty() || isLoading(stats) ? Place.NO_LIMIT : Place.parse(last).next();
  }

  private static void rest() {
    try {
      Thread.sleep(REST_MS);
    } catch (InterruptedException e) {
      throw PulsarFailure.interrupted();
    }
  }
}
