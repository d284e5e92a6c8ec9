package io.headgate.kernel.pulsar;

import io.headgate.kernel.sink.LogWriter;
import io.headgate.kernel.testing.CrashPoint;
import java.util.HashMap;
import java.util.Map;

/** Sends one task's rows of one epoch as they come; they are there once they are acknowledged, and again after a replay. */
final class AtLeastOnce implements LogWriter {
  private final Map<Integer, Destination> destinations;
  private final Messages messages;
  private final Outbox outbox;
  private final Map<Integer, PulsarTopic[]> places = new HashMap<>();
  /** Null once they were given back or closed. */
  private TaskProducers producers;
  private int rank;

  AtLeastOnce(Map<Integer, Destination> destinations, Messages messages, Outbox outbox, TaskProducers producers) {
    this.destinations = destinations;
    this.messages = messages;
    this.outbox = outbox;
    this.producers = producers;
    destinations.forEach((output, destination) -> places.put(output, destination.places()));
  }

  @Override public void write(int output, byte[] envelope) {
    PulsarTopic[] partitions = places.get(output);
    OutputRow row = OutputRow.of(envelope);
    PulsarTopic place = partitions[messages.route(row, partitions.length, rank++ & Integer.MAX_VALUE)];
    if (producers.get(place) == null) producers.open(Map.of(place, destinations.get(output)));
    Outlet outlet = producers.get(place);
    outbox.send(outlet, messages.of(outlet, row), row.size(), SequenceId.NONE);
    if (rank == 1) CrashPoint.at("in-transaction");
  }

  @Override public void commit() {
    producers.all().forEach(Outlet::flush);
    outbox.await();
    CrashPoint.at("task-committed");
    producers.give(TaskProducers.ANY);
    producers = null;
  }

  @Override public void abort() {
    if (producers != null) producers.close();
    producers = null;
  }
}
