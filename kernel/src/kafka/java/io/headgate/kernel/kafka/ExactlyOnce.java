package io.headgate.kernel.kafka;

import io.headgate.kernel.testing.CrashPoint;
import java.util.List;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.producer.KafkaProducer;

/**
 * One task's transaction of one epoch: its rows and a mark of the epoch are visible together or not at all.
 *
 * <p>A try that finds the epoch's mark drops its rows. Two tries at a time cannot both commit: the broker ends the first
 * one's producer when the second opens its own.
 */
final class ExactlyOnce implements Delivery {
  /**
   * @param id the task's transactional id
   * @param topic goes into the mark
   * @param written what the lineage had written when the query began
   */
  record Task(
      TaskProducer.Slot slot, Lineage lineage, String id, int tasks, long epoch, String topic, Written written) {}

  private final Task task;
  private final ClientOptions client;
  private final long since = System.nanoTime();
  private TaskProducer held;
  private boolean done;

  private ExactlyOnce(Task task, ClientOptions client) {
    this.task = task;
    this.client = client;
  }

  static ExactlyOnce open(Task task, ClientOptions client) {
    task.written.check(task.lineage, task.tasks, task.epoch);
    var out = new ExactlyOnce(task, client);
    out.held = TaskProducer.take(task.slot, task.epoch);
    try {
      if (out.held == null) out.connect();
      if (!out.done) out.producer().beginTransaction();
      return out;
    } catch (RuntimeException e) {
      RuntimeException told = out.failure(e);
      out.abandon();
      throw told;
    }
  }

  /** Opens a producer of this try's own, and learns whether another one was first. */
  private void connect() {
    held = new TaskProducer(task.slot, ProducerSettings.openTransactional(client, task.id));
    try (Admin admin = client.openAdmin()) {
      // A task of an old query that was asleep must not end the producers of the one in its place.
      checkClaim(admin);
      CrashPoint.at("claim-checked");
      // It ends what an earlier try left open, so that the mark is final.
      producer().initTransactions();
      // Again: a query that claimed the lineage meanwhile has not fenced this producer. One that claims it from now on will.
      checkClaim(admin);
      Mark mark = Marks.read(admin, List.of(task.id)).getOrDefault(task.id, task.written.marks().get(task.id));
      if (mark == null || mark.epoch() < task.epoch) return;
      Written.check(task.lineage, mark.epoch(), mark.tasks(), task.tasks, task.epoch);
      done = true;
    }
  }

  private void checkClaim(Admin admin) {
    switch (Marks.whose(admin, task.lineage, task.slot.run())) {
      case MINE -> { }
      case OTHERS -> throw replaced();
      // It is renewed as long as the query runs. A new attempt claims the lineage again, or finds out what is missing.
      case GONE -> throw new IllegalStateException("cannot write batch " + task.epoch + " of run " + task.lineage.name()
          + ": its claim is gone from " + client.servers() + ", where group '" + task.lineage.group() + "' or topic '"
          + Marks.TOPIC + "' was deleted");
    }
  }

  @Override public boolean isDone() { return done; }

  @Override public KafkaProducer<byte[], byte[]> producer() { return held.producer; }

  @Override public void mark() {
    Marks.write(producer(), task.id, new Mark(task.epoch, task.tasks, task.topic));
  }

  @Override public void commit() {
    if (!done) {
      CrashPoint.at("state-committed");
      producer().commitTransaction();
      CrashPoint.at("task-committed");
    }
    held.give(task.epoch + 1);
    held = null;
  }

  @Override public void abandon() {
    if (held != null) held.close();
    held = null;
  }

  @Override public RuntimeException failure(Throwable thrown) {
    if (Failures.isFenced(thrown)) return fenced(thrown);
    return Failures.of(thrown, client.servers(), "write in transaction " + task.id);
  }

  /** A broker has ended this producer: because of a newer query, of another try in this one, or of its age. */
  private RuntimeException fenced(Throwable thrown) {
    try (Admin admin = client.openAdmin()) {
      if (Marks.whose(admin, task.lineage, task.slot.run()) == Marks.Claim.OTHERS) return replaced();
    } catch (RuntimeException e) {
      return Failures.of(e, client.servers(), "learn who ended transaction " + task.id);
    }
    long open = (System.nanoTime() - since) / 1_000_000;
    long allowed = ProducerSettings.transactionTimeoutMs(client);
    if (open >= allowed)
      return new KafkaFailure(Failures.TRANSACTION_TIMEOUT, "cannot commit batch " + task.epoch + " at " + client.servers()
          + ": its transaction was open for " + open + " ms, and producer.transaction.timeout.ms is " + allowed, thrown);
    return new IllegalStateException(
        "another attempt of the task took over transaction " + task.id + ", so this one stops", thrown);
  }

  private KafkaFailure replaced() {
    return new KafkaFailure(Failures.FENCED, "cannot write batch " + task.epoch + " of run " + task.lineage.name()
        + ": a newer attempt writes to " + client.servers() + ", so this one stops");
  }
}
