package io.headgate.kernel.kafka;

import io.headgate.kernel.sink.LogSpec;
import io.headgate.kernel.sink.LogWriter;
import io.headgate.kernel.sink.LogWriters;
import io.headgate.kernel.sink.PositionHeader;
import java.util.Collections;
import java.util.List;
import org.apache.kafka.clients.admin.Admin;

/** Writes a flow's rows to one Kafka cluster. */
public final class KafkaWriters implements LogWriters {
  private final LogSpec spec;
  private final ClientOptions client;
  private final Lineage lineage;
  /** How the cluster names itself; known once it was asked. */
  private String cluster;
  /** Tells the ids of this query's clients apart where several reach one cluster. */
  private int slot;
  private Written written = Written.NOTHING;
  private List<Lineage> claimed = List.of();
  /** On the driver alone. */
  private transient Renewal renewal;

  public KafkaWriters(LogSpec spec) {
    this.spec = spec;
    client = ClientOptions.parse(spec.client());
    lineage = new Lineage(spec.query().job(), spec.query().lineage());
  }

  @Override public void prepare(List<LogWriters> earlier) {
    try (Admin admin = client.openAdmin()) {
      var preparation = new Preparation(spec, client, admin);
      preparation.checkTopics();
      if (!spec.exactlyOnce()) {
        // What this job left open in transactions would hide the rows from readers of committed ones.
        if (preparation.hasMarks()) preparation.fence(0);
        return;
      }
      cluster = Reply.of(admin.describeCluster().clusterId());
      slot = (int) earlier.stream().filter(this::isBeside).count();
      preparation.checkTimeout();
      preparation.makeMarkTopic();
      preparation.checkMarks();
      preparation.fence(slot);
      claimed = List.copyOf(preparation.lineages().keySet());
      renewal = new Renewal(this::renew, preparation.renewalInterval());
      written = preparation.written(slot);
    } catch (RuntimeException e) {
      throw Failures.of(e, client.servers(), "prepare to write");
    }
  }

  /** Keeps the claims of this query from expiring. */
  public void renew() {
    try (Admin admin = client.openAdmin()) {
      for (Lineage each : claimed) Marks.renew(admin, each, spec.query().run());
    }
  }

  private boolean isBeside(LogWriters other) {
    return other instanceof KafkaWriters k && cluster != null && cluster.equals(k.cluster);
  }

  @Override public LogWriter open(int task, int tasks, long epoch) {
    var place = new TaskProducer.Slot(spec.query().run(), spec.cluster(), task);
    Delivery delivery = spec.exactlyOnce()
        ? ExactlyOnce.open(new ExactlyOnce.Task(
            place, lineage, lineage.id(task, slot), tasks, epoch, Collections.min(spec.topics().values()), written), client)
        : AtLeastOnce.open(place, client);
    return new KafkaWriter(delivery, new PositionHeader(spec.query().lineage(), spec.query().sources()), spec.topics());
  }

  @Override public void passed(int task, long epoch) {
    TaskProducer.pass(new TaskProducer.Slot(spec.query().run(), spec.cluster(), task), epoch);
  }

  @Override public void close() {
    if (renewal != null) renewal.close();
    TaskProducer.closeAll(spec.query().run());
  }
}
