package io.headgate.kernel.pulsar;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClientException;

/**
 * Opens a task's producers.
 *
 * @param name what the broker knows the task by; null where it need not know it
 */
record ProducerOpening(ProducerSettings settings, String service, String name) {
  static final String BUSY = "PRODUCER_BUSY";

  /**
   * How long a name may be taken by a producer of a process that is gone.
   *
   * <p>A killed one is gone at once. Where a machine or the network is, a broker of Pulsar 4 asks the old connection and
   * waits 5 s ({@code connectionLivenessCheckTimeoutMillis}); an older one finds out by two pings, 30 s apart.
   */
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(75);
  private static final long RETRY_MS = 100;

  /** Returns a producer for each place; where one cannot be had, none stays open. */
  Map<PulsarTopic, Outlet> open(Map<PulsarTopic, Destination> wanted) {
    var out = new HashMap<PulsarTopic, Outlet>();
    long since = System.nanoTime();
    try {
      for (var left = new HashMap<>(wanted);;) {
        PulsarClientException busy = tryAll(left, out);
        left.keySet().removeAll(out.keySet());
        if (left.isEmpty()) return out;
        if (System.nanoTime() - since > PATIENCE_NANOS)
          throw new PulsarFailure(BUSY, "cannot write to " + left.keySet().iterator().next() + " as producer " + name
              + ": another process is connected to " + service + " under that name", busy);
        TimeUnit.MILLISECONDS.sleep(RETRY_MS);
      }
    } catch (InterruptedException | RuntimeException e) {
      out.values().forEach(each -> each.producer().closeAsync());
      throw PulsarFailure.of(e, service, "open producers");
    }
  }

  /** Opens what can be had; returns why the others have to wait, or null. */
  private PulsarClientException tryAll(Map<PulsarTopic, Destination> wanted, Map<PulsarTopic, Outlet> out)
      throws InterruptedException {
    var asked = new HashMap<PulsarTopic, CompletableFuture<Producer<byte[]>>>();
    wanted.forEach((place, destination) -> asked.put(place, settings.builder(destination, place, name).createAsync()));
    PulsarClientException busy = null;
    RuntimeException failed = null;
    for (var each : asked.entrySet()) {
      try {
        Producer<byte[]> producer = each.getValue().get();
        out.put(each.getKey(),
            new Outlet(wanted.get(each.getKey()), each.getKey(), producer, producer.getLastSequenceId()));
      } catch (ExecutionException e) {
        if (e.getCause() instanceof PulsarClientException.ProducerBusyException b) busy = b;
        else failed = PulsarFailure.of(e, service, "write to " + each.getKey());
      } catch (InterruptedException e) {
        // Those that are still on their way would hold the name from the task's next try.
        asked.forEach((place, made) -> {
          if (!out.containsKey(place)) made.thenAccept(Producer::closeAsync);
        });
        throw e;
      }
    }
    if (failed != null) throw failed;
    return busy;
  }
}
