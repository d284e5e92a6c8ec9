package io.headgate.kernel.kafka;

import io.headgate.kernel.sink.LogSpec;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** What the driver does at a cluster before a query's first epoch. */
final class Preparation {
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(15);
  private static final long RETRY_MS = 100;
  private static final String CLEANUP = "cleanup.policy";
  private static final String LONGEST = "transaction.max.timeout.ms";
  private static final String OFFSETS_RETENTION = "offsets.retention.minutes";

  private final LogSpec spec;
  private final ClientOptions client;
  private final Admin admin;
  private final Lineage lineage;
  private Set<String> groups;

  Preparation(LogSpec spec, ClientOptions client, Admin admin) {
    this.spec = spec;
    this.client = client;
    this.admin = admin;
    lineage = new Lineage(spec.query().job(), spec.query().lineage());
  }

  /** Throws where a topic is missing; nothing makes one by the way. */
  void checkTopics() {
    var missing = missing(new TreeSet<>(spec.topics().values()));
    if (missing.isEmpty()) return;
    String names = missing.stream().map(t -> "'" + t + "'").collect(Collectors.joining(", "));
    throw new KafkaFailure(KafkaFailure.TOPIC_MISSING,
        "cannot write to " + (missing.size() == 1 ? "topic " : "topics ") + names + ": not found at " + client.servers());
  }

  private Set<String> missing(Set<String> topics) {
    var out = new LinkedHashSet<String>();
    for (var each : admin.describeTopics(topics).topicNameValues().entrySet()) {
      try {
        Reply.of(each.getValue());
      } catch (UnknownTopicOrPartitionException e) {
        out.add(each.getKey());
      }
    }
    return out;
  }

  /** Throws if brokers do not allow a transaction to stay open for as long as the options ask. */
  void checkTimeout() {
    // Without an answer a task finds out when it opens its first transaction.
    Optional<Long> allowed = brokerSetting(LONGEST);
    long asked = ProducerSettings.transactionTimeoutMs(client);
    if (allowed.isPresent() && asked > allowed.get())
      throw new KafkaFailure(KafkaFailure.REFUSED, "cannot open transactions of " + asked + " ms: the brokers at "
          + client.servers() + " allow " + allowed.get() + " ms: raise their " + LONGEST
          + ", or lower the option producer.transaction.timeout.ms");
  }

  /** Returns how often claims must be renewed: four times in the period after which brokers delete offsets of idle groups. */
  Duration renewalInterval() {
    return brokerSetting(OFFSETS_RETENTION).map(minutes -> Duration.ofMinutes(minutes).dividedBy(4))
        .filter(interval -> interval.compareTo(Renewal.LONGEST) < 0).orElse(Renewal.LONGEST);
  }

  /** Returns a numeric setting of a broker; empty if this user may not read it. */
  private Optional<Long> brokerSetting(String name) {
    try {
      int node = Reply.of(admin.describeCluster().nodes()).iterator().next().id();
      var broker = new ConfigResource(ConfigResource.Type.BROKER, Integer.toString(node));
      return Optional.of(Long.parseLong(Reply.of(admin.describeConfigs(List.of(broker)).all()).get(broker).get(name).value()));
    } catch (RuntimeException e) {
      return Optional.empty();
    }
  }

  void makeMarkTopic() {
    if (missing(Set.of(Marks.TOPIC)).isEmpty()) {
      checkMarkTopic();
      return;
    }
    try {
      Reply.of(admin.createTopics(List.of(MarkTopic.wanted())).all());
    } catch (TopicExistsException e) {
      // Another job has just made it, or not every broker had heard of it.
      onceKnown(this::checkMarkTopic);
    }
  }

  /** Throws where brokers would delete marks because of their age. */
  private void checkMarkTopic() {
    var topic = new ConfigResource(ConfigResource.Type.TOPIC, Marks.TOPIC);
    String policy;
    try {
      policy = Reply.of(admin.describeConfigs(List.of(topic)).all()).get(topic).get(CLEANUP).value();
    } catch (AuthorizationException e) {
      // Not every user may read a topic's settings.
      return;
    }
    if (!policy.equals("compact"))
      throw new KafkaFailure(Failures.MARKS_EXPIRE, "cannot write exactly once at " + client.servers() + ": topic '"
          + Marks.TOPIC + "' holds the marks of written batches, and its " + CLEANUP + " must be compact, got " + policy);
  }

  /**
   * Throws where a batch may be half written and the marks that would say so are gone.
   *
   * <p>The query that began it had claimed the lineage before. Tasks that wrote no rows have no marks, but the claim is there,
   * in the group or in the topic, unless the topic was deleted since.
   */
  void checkMarks() {
    if (spec.query().unfinishedSince() == 0) return;
    if (Marks.isClaimed(admin, lineage) || MarkTopic.remembers(client, lineage)) return;
    throw new KafkaFailure(Failures.MARKS_LOST, "cannot finish a batch of run " + lineage.name() + " exactly once: topic '"
        + Marks.TOPIC + "' at " + client.servers() + " has no mark of the run: the topic was deleted after the batch was started,"
        + " or the batch was started on other brokers or at-least-once; its written rows would be duplicated");
  }

  /** Returns whether this job has written here in transactions before. */
  boolean hasMarks() {
    return groups().stream().anyMatch(id -> lineages().keySet().stream().anyMatch(l -> l.has(id)));
  }

  /** Ends whatever earlier queries left open and keeps their tasks from writing, those of other lineages too. */
  void fence(int slot) {
    if (spec.exactlyOnce() && !Marks.isNoted(admin, lineage)) Marks.note(client, lineage, spec.query().run());
    var ids = new TreeSet<String>();
    lineages().forEach((which, tasks) -> {
      claim(which);
      for (int task = 0; task < tasks; task++) ids.add(which.id(task, slot));
      // Earlier queries may have had more tasks and more clients.
      groups().stream().filter(which::has).forEach(ids::add);
    });
    Reply.of(admin.fenceProducers(ids).all());
  }

  /** Returns the lineages whose tasks must be kept from writing, and how many each has. */
  Map<Lineage, Integer> lineages() {
    var out = new LinkedHashMap<Lineage, Integer>();
    out.put(lineage, spec.query().tasks());
    for (LogSpec.Fenced earlier : spec.query().fence())
      out.put(new Lineage(spec.query().job(), earlier.lineage()), earlier.tasks());
    return out;
  }

  private void claim(Lineage which) {
    onceKnown(() -> Marks.claim(admin, which, spec.exactlyOnce() ? spec.query().run() : Marks.NOBODY));
  }

  /** Does what needs the topic of marks, which may be so new that not every broker has heard of it. */
  private static void onceKnown(Runnable action) {
    long since = System.nanoTime();
    for (;;) {
      try {
        action.run();
        return;
      } catch (UnknownTopicOrPartitionException e) {
        if (System.nanoTime() - since > PATIENCE_NANOS) throw e;
        pause();
      }
    }
  }

  private static void pause() {
    try {
      Thread.sleep(RETRY_MS);
    } catch (InterruptedException e) {
      throw new InterruptException(e);
    }
  }

  private Set<String> groups() {
    if (groups == null)
      groups = Reply.of(admin.listGroups().all()).stream().map(GroupListing::groupId).collect(Collectors.toSet());
    return groups;
  }

  /** Returns what this lineage has written; its earlier queries must have been fenced. */
  Written written(int slot) {
    var ids = groups().stream().filter(lineage::has).collect(Collectors.toCollection(HashSet::new));
    for (int task = 0; task < spec.query().tasks(); task++) ids.add(lineage.id(task, slot));
    Map<String, Mark> marks = new HashMap<>(Marks.read(admin, ids));
    if (!marks.keySet().containsAll(ids))
      MarkTopic.read(client, lineage).forEach((id, mark) -> marks.merge(id, mark, Mark::later));
    return Written.of(marks, slot, spec.topics().values());
  }
}
