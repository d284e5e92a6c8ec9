package io.headgate.kernel.pulsar;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.FutureTask;
import org.apache.pulsar.client.api.PulsarClient;

/**
 * The JVM's clients, one for each cluster and way to reach it; they live as long as the JVM does.
 *
 * <p>A client is a set of threads and connections, which all readers and producers of the JVM share. None of its threads
 * keeps the JVM alive.
 */
public final class Clients {
  private static final Map<ClientOptions, PulsarClient> ALL = new ConcurrentHashMap<>();

  private Clients() {}

  /** Returns the client of these options; the first to ask makes it, and nobody closes it. */
  public static PulsarClient of(ClientOptions options) {
    return ALL.computeIfAbsent(options, Clients::open);
  }

  /** Opens a client on a daemon thread: its own threads are made likewise. */
  private static PulsarClient open(ClientOptions options) {
    var made = new FutureTask<>(options::open);
    var thread = new Thread(made, "headgate-pulsar-client");
    thread.setContextClassLoader(Thread.currentThread().getContextClassLoader());
    thread.setDaemon(true);
    thread.start();
    try {
      return made.get();
    } catch (InterruptedException e) {
      throw PulsarFailure.interrupted();
    } catch (java.util.concurrent.ExecutionException e) {
      throw PulsarFailure.of(e, options.service(), "create a client");
    }
  }
}
