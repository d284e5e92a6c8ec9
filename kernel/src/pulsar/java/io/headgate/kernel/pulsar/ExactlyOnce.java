package io.headgate.kernel.pulsar;

import io.headgate.kernel.sink.LogWriter;
import io.headgate.kernel.testing.CrashPoint;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;

/**
 * Keeps one task's rows of one epoch until it commits, puts them in order, numbers them and sends them.
 *
 * <p>Another try has the same rows under the same numbers and the same name, and the broker drops those that it has.
 */
final class ExactlyOnce implements LogWriter {
  static final String AHEAD = "OUTPUT_AHEAD";
  static final String CHANGED = "OUTPUT_CHANGED";

  /** How often rows are sent again; each time, a connection was lost with rows on their way. */
  private static final int ROUNDS = 8;

  /**
   * @param destinations by the address of the output
   * @param resumed whether the epoch may have been begun by a process before this one
   * @param order in which rows are numbered
   */
  record Task(
      String lineage, int tasks, long epoch, Map<Integer, Destination> destinations, boolean resumed,
      Comparator<OutputRow> order) {}

  private final Task task;
  private final Messages messages;
  private final Outbox outbox;
  private final Map<Integer, PulsarTopic[]> places = new HashMap<>();
  private final HeldRows held;
  /** Null once they were given back or closed. */
  private TaskProducers producers;
  private boolean sent;

  ExactlyOnce(Task task, Messages messages, Outbox outbox, TaskProducers producers) {
    this.task = task;
    this.messages = messages;
    this.outbox = outbox;
    this.producers = producers;
    held = new HeldRows(task.order, task.tasks);
    task.destinations.forEach((output, destination) -> places.put(output, destination.places()));
  }

  @Override public void write(int output, byte[] envelope) {
    held.add(envelope);
  }

  @Override public void commit() {
    CrashPoint.at("state-committed");
    held.sort();
    var wanted = new HashMap<PulsarTopic, Destination>();
    PulsarTopic[] where = route(wanted);
    if (task.resumed) wantAll(wanted);
    producers.open(wanted);
    producers.all().forEach(this::check);
    sendAll(where);
    held.clear();
    CrashPoint.at("task-committed");
    producers.give(task.epoch);
    producers = null;
  }

  /** Returns where each row goes, by its rank; tells which places these are. */
  private PulsarTopic[] route(Map<PulsarTopic, Destination> wanted) {
    var out = new PulsarTopic[held.size()];
    Iterator<OutputRow> rows = held.iterator();
    for (int rank = 0; rank < out.length; rank++) {
      OutputRow row = rows.next();
      PulsarTopic[] partitions = places.get(row.output());
      out[rank] = partitions[messages.route(row, partitions.length, rank)];
      wanted.put(out[rank], task.destinations.get(row.output()));
    }
    return out;
  }

  /** An earlier try may have sent rows elsewhere, where none would go now, and only the broker there knows. */
  private void wantAll(Map<PulsarTopic, Destination> wanted) {
    for (Destination destination : task.destinations.values())
      for (PulsarTopic place : destination.places()) wanted.put(place, destination);
  }

  /**
   * Sends every row until the broker is known to have it.
   *
   * <p>A client that has reconnected sends its batches again, and the broker may take one for a double. That is right, unless
   * another try of the task had the name in between and has written the first rows of that batch: then the others would be
   * lost. Producers that connect anew are told what the broker has, and rows it may have go one by one.
   */
  private void sendAll(PulsarTopic[] where) {
    Set<PulsarTopic> left = new HashSet<>(Arrays.asList(where));
    for (int round = 0; !left.isEmpty(); round++) {
      if (round == ROUNDS)
        throw new IllegalStateException("cannot make sure that batch " + task.epoch + " is in " + left + ": its connections"
            + " were lost " + ROUNDS + " times, or another process writes under its name");
      if (round > 0) producers.reopen(left);
      for (PulsarTopic place : left) check(producers.get(place));
      left = send(where, left);
    }
  }

  /** Throws where an epoch does not go with what the broker has. */
  private void check(Outlet outlet) {
    if (outlet.known() == SequenceId.NONE) return;
    long written = SequenceId.epoch(outlet.known());
    if (written > task.epoch)
      throw new PulsarFailure(AHEAD, "cannot write batch " + task.epoch + " of run " + task.lineage + ": " + outlet.place()
          + " holds batch " + written + ": the checkpoint was reset to an older one, or another job writes under its name");
    if (written == task.epoch && SequenceId.shape(outlet.known()) != shape(outlet.destination()))
      throw new PulsarFailure(CHANGED, "cannot finish batch " + task.epoch + " of run " + task.lineage + ": the number"
          + " of tasks, now " + task.tasks + ", or of partitions of " + outlet.destination().topic() + ", now "
          + outlet.destination().partitions() + ", has changed since it was started, and with it the distribution of its rows");
  }

  private int shape(Destination destination) {
    return SequenceId.shape(task.tasks, destination.partitions());
  }

  /** Sends the rows of some places; returns where the broker took new ones for doubles. */
  private Set<PulsarTopic> send(PulsarTopic[] where, Set<PulsarTopic> to) {
    Iterator<OutputRow> rows = held.iterator();
    for (int rank = 0; rank < where.length; rank++) {
      OutputRow row = rows.next();
      if (to.contains(where[rank])) send(producers.get(where[rank]), row, rank);
    }
    settle();
    return outbox.takeDoubted();
  }

  private void send(Outlet outlet, OutputRow row, int rank) {
    long id = SequenceId.of(task.epoch, shape(outlet.destination()), rank);
    // A broker may refuse a large one. What goes out behind it would make it a double for ever.
    boolean alone = row.size() > outlet.destination().large();
    if (alone) settle();
    outbox.send(outlet, messages.of(outlet, row).sequenceId(id), row.size(), id);
    if (alone) settle();
    if (sent) return;
    sent = true;
    CrashPoint.at("in-transaction");
  }

  private void settle() {
    producers.all().forEach(Outlet::flush);
    outbox.await();
  }

  @Override public void abort() {
    held.clear();
    if (producers != null) producers.close();
    producers = null;
  }
}
