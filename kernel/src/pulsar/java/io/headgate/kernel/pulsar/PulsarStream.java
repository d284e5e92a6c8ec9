package io.headgate.kernel.pulsar;

import io.headgate.kernel.gate.Partitioned;
import io.headgate.kernel.gate.Presents;
import io.headgate.kernel.pulsar.PulsarOffset.Standpoint;
import io.headgate.kernel.pulsar.TopicCatalog.Topic;
import io.headgate.kernel.source.Finding;
import io.headgate.kernel.source.Judge;
import io.headgate.kernel.source.LagProbe;
import io.headgate.kernel.source.TaskFindings;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;

/**
 * Reads topics in batches of bounded size; serves the query's thread.
 *
 * <p>Before each batch the position is held against the topics as they are. Records that are gone before they were read end
 * the query, or are told and passed over, as the user chose.
 */
final class PulsarStream
    implements MicroBatchStream, SupportsAdmissionControl, ReportsSourceMetrics, Presents, Partitioned {
  /** A broker that has just started may not know every topic yet. */
  private static final long MISSING_MS = 3_000;
  private static final long LOOK_AGAIN_MS = 250;

  private final SourceOptions options;
  private final TopicCatalog catalog;
  private final LagProbe<PulsarTopic, Place> probe;
  private final Judge judge;
  private final OwnSubscription own;
  private final Volume volume;
  private final TaskFindings findings;
  /** Topics that were looked for long enough. */
  private Set<PulsarTopic> gone = Set.of();
  /** The topics as they were when the batch before was planned. */
  private SortedMap<String, Topic> before = new TreeMap<>();
  /** Where the batch that is planned now starts, as it was logged, and where that lies today. */
  private PulsarOffset start;
  private PulsarOffset standing;

  PulsarStream(SourceOptions options) {
    this.options = options;
    catalog = new TopicCatalog(options);
    probe = new LagProbe<>("headgate-pulsar-lag", () -> new UnreadTimes(options.client()));
    judge = new Judge(options.run(), options.source(), options.failOnLoss());
    own = new OwnSubscription(options.subscription(), AdminApi.shared(options.client()));
    volume = new Volume(SparkSession.active().sparkContext());
    findings = TaskFindings.registered(SparkSession.active().sparkContext(), options.run(), options.source());
  }

  @Override public Offset initialOffset() {
    List<PulsarTopic> missing = missing(options.topics());
    if (!missing.isEmpty()) {
      String name = missing.get(0).local();
      throw new PulsarFailure(PulsarFailure.TOPIC_MISSING, "cannot read topic '" + name + "': it does not exist at "
          + options.client().service() + "; create it: headgate topics create " + name);
    }
    return StartPosition.of(options.start(), catalog);
  }

  /** Returns those topics that are not there; one that has only just come out of sight is looked for for a while. */
  private List<PulsarTopic> missing(Collection<PulsarTopic> names) {
    long until = System.nanoTime() + MISSING_MS * 1_000_000L;
    for (;;) {
      SortedMap<String, Topic> today = catalog.look();
      List<PulsarTopic> missing = names.stream().filter(name -> !today.containsKey(name.full())).toList();
      if (gone.containsAll(missing) || System.nanoTime() > until) {
        gone = Stream.concat(gone.stream().filter(name -> !today.containsKey(name.full())), missing.stream())
            .collect(Collectors.toSet());
        return missing;
      }
      try {
        Thread.sleep(LOOK_AGAIN_MS);
      } catch (InterruptedException e) {
        throw PulsarFailure.interrupted();
      }
      catalog.doubt();
    }
  }

  @Override public Offset reportLatestOffset() {
    var out = new TreeMap<String, Standpoint>();
    catalog.look().forEach((name, topic) -> out.put(
        name, new Standpoint(topic.partitioned(), topic.partitions().stream().map(Ledgers::end).toList())));
    return new PulsarOffset(out);
  }

  /** Returns a position as it lies in the topics of today, without a word about what has happened to them. */
  @Override public PulsarOffset present(Offset position) {
    return Standing.of((PulsarOffset) position, catalog.last(), before, own, options::reads).position();
  }

  /** Topics that are gone or were made anew are left out. */
  @Override public PulsarOffset left(Offset target, Offset from) {
    PulsarOffset wanted = (PulsarOffset) target;
    Set<String> known = ((PulsarOffset) from).topics.keySet();
    List<PulsarTopic> unseen = wanted.topics.keySet().stream().filter(options::reads)
        .filter(name -> !catalog.last().containsKey(name)).map(PulsarTopic::parse).toList();
    if (!unseen.isEmpty())
      judge.judge(missing(unseen).stream().filter(topic -> !known.contains(topic.full()))
          .map(topic -> new Finding(Finding.Kind.TOPIC_GONE, topic.local(),
              "topic '" + topic.local() + "' was deleted before it was read"))
          .toList());
    return Standing.left(wanted, catalog.last());
  }

  @Override public Offset latestOffset(Offset from, ReadLimit limit) {
    start = (PulsarOffset) from;
    missing(start.topics.keySet().stream().map(PulsarTopic::parse).filter(options::reads).toList());
    SortedMap<String, Topic> today = catalog.last();
    Standing found = Standing.of(start, today, before, own, options::reads);
    judge.judge(found.findings());
    standing = found.position();
    before = today;
    long bound = volume.stored(options.maxBytes());
    Allotment batch = Allotment.of(start, standing, today, bound);
    if (batch.left() > bound) catalog.rest();
    volume.planned(batch.bytes());
    return batch.end();
  }

  @Override public Map<String, Progress> partitions(Offset from, Offset to) {
    var out = new HashMap<String, Progress>();
    ((PulsarOffset) to).topics.forEach((name, end) -> {
      Topic topic = catalog.last().get(name);
      if (topic == null || topic.partitioned() != end.partitioned()) return;
      Standpoint begin = ((PulsarOffset) from).topics.get(name);
      for (int i = 0; i < Math.min(end.next().size(), topic.partitions().size()); i++) {
        Ledgers ledgers = topic.partitions().get(i);
        Place next = end.next().get(i);
        boolean begun = begin != null && begin.knows(end.partitioned(), i);
        out.put(Partitioned.name(topic.name().local(), i), Progress.of(
            begun, begun && begin.next().get(i).compareTo(next) < 0, ledgers.count(next, ledgers.end()) > 0,
            ledgers.count(ledgers.first(), ledgers.end()) == 0));
      }
    });
    return out;
  }

  @Override public Offset latestOffset() {
    throw new UnsupportedOperationException("the position depends on where reading starts");
  }

  @Override public InputPartition[] planInputPartitions(Offset from, Offset to) {
    PulsarOffset end = (PulsarOffset) to;
    if (!from.equals(start)) resume((PulsarOffset) from, end);
    return PulsarSplit.plan(start, standing, end, options.splits(), catalog.last()).toArray(InputPartition[]::new);
  }

  /** Holds a batch that was logged by a run before against the topics of today: it may be read again long after. */
  private void resume(PulsarOffset from, PulsarOffset end) {
    var read = new TreeMap<String, Standpoint>();
    from.topics.forEach((name, at) -> {
      if (options.reads(name) && !at.equals(end.topics.get(name))) read.put(name, at);
    });
    missing(read.keySet().stream().map(PulsarTopic::parse).toList());
    Standing found = Standing.of(new PulsarOffset(read), catalog.last(), before, own, read::containsKey);
    judge.judge(found.findings().stream().filter(Finding::isLoss).toList());
    start = from;
    standing = found.position();
  }

  @Override public PartitionReaderFactory createReaderFactory() {
    return new PulsarReader.Settings(
        options.client(), options.run(), options.source(), options.reader(), options.maxRecord(), options.meta(), options.failOnLoss(),
        volume.queue(catalog.last().values()), volume.counters(), findings);
  }

  @Override public Offset deserializeOffset(String json) {
    return PulsarOffset.parse(json);
  }

  @Override public void commit(Offset end) {}

  @Override public void stop() {
    probe.close();
    ReaderPool.close(options.run(), options.source());
  }

  /** Tells about how many records are unread, exactly where there are none, and how old the oldest of them is. */
  @Override public Map<String, String> metrics(Optional<Offset> consumed) {
    if (consumed.isEmpty()) return Map.of();
    PulsarOffset at = present(PulsarOffset.parse(consumed.get().json()));
    var unread = new HashMap<PulsarTopic, Place>();
    var batches = new UnreadBatches(options.client());
    long entries = 0;
    for (Topic topic : catalog.last().values()) {
      List<Place> next = at.topics.get(topic.name().full()).next();
      for (int i = 0; i < next.size(); i++) {
        Ledgers ledgers = topic.partitions().get(i);
        long left = ledgers.count(next.get(i), ledgers.end());
        if (left == 0) continue;
        entries += left;
        unread.put(topic.plain(i), next.get(i));
        batches.add(topic.plain(i), ledgers, left);
      }
    }
    if (entries > 0 && !volume.knowsBatches()) batches.mean().ifPresent(volume::sampled);
    var out = new LinkedHashMap<String, String>();
    out.put("lagRecords", Long.toString(volume.records(entries)));
    if (entries == 0) out.put("lagMs", "0");
    else out.put("lagEstimated", "true");
    long now = System.currentTimeMillis();
    probe.oldest(unread).ifPresent(oldest -> out.put("lagMs", Long.toString(Math.max(0, now - oldest))));
    return out;
  }
}
