package io.headgate.kernel.kafka;

import java.time.Duration;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * Repeats an action on its own thread while a query runs.
 *
 * <p>Brokers delete the offsets of a group a week after they were committed, or after their
 * {@code offsets.retention.minutes}.
 */
final class Renewal implements AutoCloseable {
  static final Duration LONGEST = Duration.ofHours(1);

  private final ScheduledExecutorService thread = Executors.newSingleThreadScheduledExecutor(work -> {
    var out = new Thread(work, "headgate-kafka-claims");
    out.setDaemon(true);
    return out;
  });

  Renewal(Runnable action, Duration interval) {
    thread.scheduleWithFixedDelay(() -> {
      try {
        action.run();
      } catch (RuntimeException e) {
        // The cluster is out of reach: writing fails too, and the next renewal comes before the claim expires.
      }
    }, interval.toMillis(), interval.toMillis(), TimeUnit.MILLISECONDS);
  }

  @Override public void close() {
    thread.shutdownNow();
  }
}
