package io.headgate.kernel.kafka;

import java.time.Duration;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;

/**
 * A task's producer, kept in this process from epoch to epoch: opening one costs some 100 ms.
 *
 * <p>Whoever takes it has it alone, and gives it back only after a commit. One with transactions serves the very next epoch
 * or none: any other try of the task may have taken its place elsewhere since.
 */
final class TaskProducer {
  /** Which task of which query, and to which of its clusters. */
  record Slot(String run, int cluster, int task) {}

  /** For a producer that serves every epoch. */
  static final long ANY = -1;

  private static final ConcurrentMap<Slot, TaskProducer> IDLE = new ConcurrentHashMap<>();
  /** Brokers forget producers that are idle for days; and a task may never come back to this process. */
  private static final long KEPT_NANOS = TimeUnit.HOURS.toNanos(1);
  /** Enough for an open transaction to be ended where there is a broker, and short where there is none. */
  private static final Duration ENDING = Duration.ofSeconds(5);

  final KafkaProducer<byte[], byte[]> producer;
  private final Slot slot;
  private volatile long next;
  private volatile long idleSince;

  TaskProducer(Slot slot, KafkaProducer<byte[], byte[]> producer) {
    this.slot = slot;
    this.producer = producer;
  }

  /** Returns the producer that a task left for this epoch; null if there is none. */
  static TaskProducer take(Slot slot, long epoch) {
    closeOld();
    TaskProducer found = IDLE.remove(slot);
    if (found == null || found.next == epoch || found.next == ANY) return found;
    found.close();
    return null;
  }

  /** Leaves it for the task's next epoch. */
  void give(long epoch) {
    next = epoch;
    idleSince = System.nanoTime();
    TaskProducer other = IDLE.put(slot, this);
    if (other != null) other.close();
  }

  /** Moves on over an epoch that the task committed without it. */
  static void pass(Slot slot, long epoch) {
    TaskProducer found = IDLE.get(slot);
    if (found != null && found.next == epoch) found.next = epoch + 1;
  }

  static void closeAll(String run) {
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

  /** Ends it, and a transaction that is open, whatever state it and this thread are in. */
  void close() {
    // An interrupted thread would not wait, and the transaction would stay open until it times out.
    boolean interrupted = Thread.interrupted();
    try {
      producer.close(ENDING);
    } catch (RuntimeException e) {
      // Whoever opens the next producer of the task ends what this one could not.
    } finally {
      if (interrupted) Thread.currentThread().interrupt();
    }
  }
}
