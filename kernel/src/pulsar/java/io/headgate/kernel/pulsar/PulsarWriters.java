package io.headgate.kernel.pulsar;

import io.headgate.kernel.sink.LogSpec;
import io.headgate.kernel.sink.LogWriter;
import io.headgate.kernel.sink.LogWriters;
import io.headgate.kernel.sink.PositionHeader;
import java.time.Instant;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Writes a flow's rows to one Pulsar cluster. */
public final class PulsarWriters implements LogWriters {
  private final LogSpec spec;
  private final ClientOptions client;
  /** Tells the producers of this query's clients apart where several write to one topic. */
  private int slot;
  private Map<Integer, Destination> destinations = Map.of();

  public PulsarWriters(LogSpec spec) {
    this.spec = spec;
    client = ClientOptions.parse(spec.client());
  }

  @Override public void prepare(List<LogWriters> earlier) {
    try {
      var preparation = new Preparation(spec, client, new AdminApi(client));
      destinations = preparation.destinations();
      if (!spec.exactlyOnce()) return;
      preparation.checkDeduplication();
      preparation.checkMemory(Instant.now());
      slot = (int) earlier.stream().filter(this::isBeside).count();
      holdNames();
    } catch (RuntimeException e) {
      throw PulsarFailure.of(e, client.service(), "prepare to write");
    }
  }

  /** Two clusters may have topics of one name; then a name of its own does no harm. */
  private boolean isBeside(LogWriters other) {
    return other instanceof PulsarWriters p && !Collections.disjoint(p.spec.topics().values(), spec.topics().values());
  }

  /**
   * Keeps the names of earlier runs from their tasks, until the query ends.
   *
   * <p>A process of such a run may have been suspended, and go on in the middle of its batch: its producers find their names
   * taken. Numbers do not stop it, since this run writes under other names. Mostly no process of such a run can be left, and
   * nothing is opened: a producer for each task and partition takes time at every start, and memory of the brokers.
   */
  private void holdNames() {
    var settings = new ProducerSettings(client);
    var places = new HashMap<PulsarTopic, Destination>();
    for (Destination each : destinations.values()) for (PulsarTopic place : each.places()) places.put(place, each);
    for (LogSpec.Fenced run : spec.query().fence())
      for (int task = 0; task < (run.isOver() ? 0 : run.tasks()); task++)
        TaskProducers.hold(
            spec.query().run(), new ProducerOpening(settings, client.service(), name(run.lineage(), task)), places);
  }

  @Override public LogWriter open(int task, int tasks, long epoch) {
    var settings = new ProducerSettings(client);
    var opening = new ProducerOpening(settings, client.service(), spec.exactlyOnce() ? name(spec.query().lineage(), task) : null);
    var messages = new Messages(new PositionHeader(spec.query().lineage(), spec.query().sources()), settings.hash());
    var outbox = new Outbox(client.service(), settings.patienceNanos());
    var place = new TaskProducers.Slot(spec.query().run(), spec.cluster(), task);
    TaskProducers producers = TaskProducers.take(place, spec.exactlyOnce() ? epoch : Long.MAX_VALUE, opening);
    return spec.exactlyOnce()
        ? new ExactlyOnce(
            new ExactlyOnce.Task(spec.query().lineage(), tasks, epoch, destinations,
                spec.query().unfinishedSince() != 0 && producers.all().isEmpty(), order(epoch)), messages, outbox, producers)
        : new AtLeastOnce(destinations, messages, outbox, producers);
  }

  private Comparator<OutputRow> order(long epoch) {
    return spec.query().placement().isPresent(epoch) ? OutputRow.ORDER : OutputRow.FIRST_ORDER;
  }

  /** Brokers know a task of a lineage by this; what they know is by topic, so that one name serves all topics. */
  private String name(String lineage, int task) {
    return "headgate." + spec.query().job() + "." + lineage + "." + task + (slot == 0 ? "" : "-" + slot);
  }

  /** Producers serve any later epoch: its numbers are above all that they have sent. */
  @Override public void passed(int task, long epoch) {}

  @Override public void close() {
    TaskProducers.closeAll(spec.query().run());
  }
}
