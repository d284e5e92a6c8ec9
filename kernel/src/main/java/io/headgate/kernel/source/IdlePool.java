package io.headgate.kernel.source;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Predicate;

/**
 * Clients between two batches; those nobody asks for are closed after some minutes.
 *
 * <p>One pool serves all queries of the JVM. A client is with one task or in here, never both.
 *
 * @param <K> whose client it is: the query's run is part of it, so that no query finds another's
 */
public final class IdlePool<K, C extends IdlePool.Client> {
  /** What is kept here. */
  public interface Client {
    /** Closes at once, whatever the thread was told in the meantime. */
    void close();
  }

  private record Idle<C>(C client, long since) {}

  private static final long KEPT_NANOS = 5 * 60 * 1_000_000_000L;
  private static final long LOOK_MS = 30_000;

  private final Map<K, Idle<C>> idle = new HashMap<>();
  private final String name;
  private final Function<K, C> open;
  private Thread closer;

  /** @param name that of the thread which closes what is unused */
  public IdlePool(String name, Function<K, C> open) {
    this.name = name;
    this.open = open;
  }

  /** Returns the client of the batch before, or a new one. */
  public C take(K key) {
    Idle<C> found;
    synchronized (idle) {
      found = idle.remove(key);
    }
    return found == null ? open.apply(key) : found.client();
  }

  /** Keeps a client for the next batch. */
  public void give(K key, C client) {
    Idle<C> before;
    synchronized (idle) {
      before = idle.put(key, new Idle<>(client, System.nanoTime()));
      if (closer == null) {
        closer = new Thread(this::closeUnused, name);
        closer.setDaemon(true);
        closer.start();
      }
    }
    // Two tries of one task ran at a time.
    if (before != null) before.client().close();
  }

  /** Closes what a source that has ended kept in this JVM. */
  public void close(Predicate<K> which) {
    closeThose(each -> which.test(each.getKey()));
  }

  private void closeThose(Predicate<Map.Entry<K, Idle<C>>> which) {
    List<C> unused = new ArrayList<>();
    synchronized (idle) {
      idle.entrySet().removeIf(each -> which.test(each) && unused.add(each.getValue().client()));
    }
    unused.forEach(Client::close);
  }

  private void closeUnused() {
    for (;;) {
      try {
        Thread.sleep(LOOK_MS);
      } catch (InterruptedException e) {
        // Nobody interrupts this thread; if somebody does, it looks at once.
      }
      long now = System.nanoTime();
      closeThose(each -> now - each.getValue().since() > KEPT_NANOS);
      synchronized (idle) {
        if (idle.isEmpty()) {
          closer = null;
          return;
        }
      }
    }
  }
}
