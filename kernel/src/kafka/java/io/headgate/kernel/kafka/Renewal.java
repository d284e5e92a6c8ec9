package io.headgate.kernel.kafka;

import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * Does something every hour, on a thread of its own, as long as a query runs.
 *
 * <p>Brokers forget the offsets of a group a week after they were committed, or sooner where they are told so.
 */
final class Renewal implements AutoCloseable {
  private static final long EVERY_MINUTES = 60;

  private final ScheduledExecutorService thread = Executors.newSingleThreadScheduledExecutor(work -> {
    var out = new Thread(work, "headgate-kafka-claims");
    out.setDaemon(true);
    return out;
  });

  Renewal(Runnable what) {
    thread.scheduleWithFixedDelay(() -> {
      try {
        what.run();
      } catch (RuntimeException e) {
        // The cluster is out of reach: writing meets that too, and there is a week for another try.
      }
    }, EVERY_MINUTES, EVERY_MINUTES, TimeUnit.MINUTES);
  }

  @Override public void close() {
    thread.shutdownNow();
  }
}
