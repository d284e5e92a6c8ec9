package io.headgate.kernel.pulsar;

import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.pulsar.client.api.Producer;
import org.apache.spark.SparkEnv;

/**
 * A task's producers, one for each place it has had rows for, kept in this process from epoch to epoch.
 *
 * <p>Whoever takes them has them alone, and gives them back only after a commit: a producer that failed may have left a row
 * out, and one that goes on behind it makes the row a double.
 */
final class TaskProducers {
  /** Which task of which query, and to which of its clusters. */
  record Slot(String run, int cluster, int task) {}

  /** For producers whose rows have no numbers. */
  static final long ANY = -1;

  private static final ConcurrentMap<Slot, TaskProducers> IDLE = new ConcurrentHashMap<>();
  /** By the query that holds them. */
  private static final ConcurrentMap<String, Queue<TaskProducers>> HELD = new ConcurrentHashMap<>();
  /** A task may never come back to this process. */
  private static final long KEPT_NANOS = TimeUnit.HOURS.toNanos(1);
  private static final long ENDING_MS = 5000;

  private final Slot slot;
  private final ProducerOpening opening;
  private final Map<PulsarTopic, Outlet> outlets = new HashMap<>();
  private volatile long last;
  private volatile long idleSince;

  private TaskProducers(Slot slot, ProducerOpening opening) {
    this.slot = slot;
    this.opening = opening;
  }

  /** Returns what the task left in an earlier epoch, or an empty set of producers. */
  static TaskProducers take(Slot slot, long epoch, ProducerOpening opening) {
    closeOld();
    TaskProducers found = IDLE.remove(slot);
    if (found != null && found.last < epoch) return found;
    // They have sent rows of this epoch in another try: only one that connects anew is told which of them the broker has.
    if (found != null) found.close();
    return new TaskProducers(slot, opening);
  }

  /** Opens producers that send nothing, and keeps them until a query ends: meanwhile no other process has their name. */
  static void hold(String run, ProducerOpening opening, Map<PulsarTopic, Destination> wanted) {
    var held = new TaskProducers(null, opening);
    held.open(wanted);
    HELD.computeIfAbsent(run, any -> new ConcurrentLinkedQueue<>()).add(held);
  }

  /** Opens those that are missing, all at once. */
  void open(Map<PulsarTopic, Destination> wanted) {
    var missing = new HashMap<>(wanted);
    missing.keySet().removeAll(outlets.keySet());
    if (!missing.isEmpty()) outlets.putAll(opening.open(missing));
  }

  /** Opens some anew, so that they know what the broker has by now. */
  void reopen(Collection<PulsarTopic> places) {
    var again = new HashMap<PulsarTopic, Destination>();
    for (PulsarTopic place : places) again.put(place, outlets.get(place).destination());
    close(places.stream().map(outlets::remove).toList());
    open(again);
  }

  Outlet get(PulsarTopic place) {
    return outlets.get(place);
  }

  Collection<Outlet> all() {
    return outlets.values();
  }

  /** Leaves them for the task's later epochs. */
  void give(long epoch) {
    if (!isLocal()) {
      close();
      return;
    }
    last = epoch;
    idleSince = System.nanoTime();
    TaskProducers other = IDLE.put(slot, this);
    if (other != null) other.close();
  }

  /** In a cluster the task's next epoch may come to another process, which cannot have the name while this one holds it. */
  private static boolean isLocal() {
    SparkEnv spark = SparkEnv.get();
    return spark == null || spark.executorId().equals("driver");
  }

  static void closeAll(String run) {
    Queue<TaskProducers> held = HELD.remove(run);
    if (held != null) held.forEach(TaskProducers::close);
    IDLE.forEach((slot, each) -> {
      if (slot.run.equals(run) && IDLE.remove(slot, each)) each.close();
    });
  }

  private static void closeOld() {
    long now = System.nanoTime();
    IDLE.forEach((slot, each) -> {
      if (now - each.idleSince > KEPT_NANOS && IDLE.remove(slot, each)) each.close();
    });
  }

  /** Ends them, with what has not been acknowledged, whatever state they and this thread are in. */
  void close() {
    close(List.copyOf(outlets.values()));
    outlets.clear();
  }

  private static void close(List<Outlet> ending) {
    var closing = ending.stream().map(Outlet::producer).map(Producer::closeAsync).toArray(CompletableFuture[]::new);
    boolean interrupted = Thread.interrupted();
    try {
      // Until the broker has heard of it, no other producer gets the name.
      CompletableFuture.allOf(closing).get(ENDING_MS, TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      interrupted = true;
    } catch (ExecutionException | TimeoutException e) {
      // Whoever opens the next one waits until the broker has noticed.
    } finally {
      if (interrupted) Thread.currentThread().interrupt();
    }
  }
}
