package io.headgate.kernel.kafka;

import io.headgate.kernel.gate.Partitioned;
import io.headgate.kernel.gate.Presents;
import io.headgate.kernel.kafka.Gauge.Waiting;
import io.headgate.kernel.kafka.KafkaOffset.Place;
import io.headgate.kernel.kafka.KafkaSplit.Range;
import io.headgate.kernel.kafka.TopicCatalog.Topic;
import io.headgate.kernel.source.Finding;
import io.headgate.kernel.source.Judge;
import io.headgate.kernel.source.LagProbe;
import io.headgate.kernel.source.TaskFindings;
import java.util.ArrayList;
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
import org.apache.kafka.common.TopicPartition;
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
final class KafkaStream
    implements MicroBatchStream, SupportsAdmissionControl, ReportsSourceMetrics, Presents, Partitioned {
  /** A broker that has just started may not know every topic yet. */
  private static final long MISSING_MS = 3_000;
  private static final long LOOK_AGAIN_MS = 250;

  private final SourceOptions options;
  private final TopicCatalog catalog;
  private final LagProbe<TopicPartition, Long> probe;
  private final Judge judge;
  private final Gauge gauge;
  private final TaskFindings findings;
  /** Topics that were looked for long enough. */
  private Set<String> gone = Set.of();

  KafkaStream(SourceOptions options) {
    this.options = options;
    catalog = new TopicCatalog(options);
    probe = new LagProbe<>("headgate-kafka-lag", () -> new OldestUnread(options));
    judge = new Judge(options.run(), options.source(), options.failOnLoss());
    gauge = new Gauge(options);
    findings = TaskFindings.registered(SparkSession.active().sparkContext(), options.run(), options.source());
  }

  @Override public Offset initialOffset() {
    List<String> missing = missing(options.topics());
    if (!missing.isEmpty())
      throw new KafkaFailure(KafkaFailure.TOPIC_MISSING, "cannot read topic '" + missing.get(0) + "': it does not exist at "
          + options.client().servers() + "; create it: headgate topics create " + missing.get(0));
    return StartPosition.of(options.start(), catalog);
  }

  /** Returns those topics that are not there; one that has only just come out of sight is looked for for a while. */
  private List<String> missing(Collection<String> names) {
    long until = System.nanoTime() + MISSING_MS * 1_000_000L;
    for (;;) {
      SortedMap<String, Topic> today = catalog.look();
      List<String> missing = names.stream().filter(name -> !today.containsKey(name)).toList();
      if (gone.containsAll(missing) || System.nanoTime() > until) {
        gone = Stream.concat(gone.stream().filter(name -> !today.containsKey(name)), missing.stream())
            .collect(Collectors.toSet());
        return missing;
      }
      try {
        Thread.sleep(LOOK_AGAIN_MS);
      } catch (InterruptedException e) {
        throw KafkaFailure.interrupted();
      }
      catalog.doubt();
    }
  }

  @Override public Offset reportLatestOffset() {
    var out = new TreeMap<String, Place>();
    catalog.look().forEach((name, topic) -> out.put(name, new Place(topic.id(), topic.ends())));
    return new KafkaOffset(out);
  }

  /** Returns a position as it lies in the topics of today, without a word about what has happened to them. */
  @Override public KafkaOffset present(Offset position) {
    return Standing.of((KafkaOffset) position, catalog.last(), options::reads).position();
  }

  /** Topics that are gone or were made anew are left out; a log that was cut ends the target. */
  @Override public KafkaOffset left(Offset target, Offset from) {
    KafkaOffset wanted = (KafkaOffset) target;
    var findings = new ArrayList<Finding>();
    Set<String> known = ((KafkaOffset) from).topics.keySet();
    List<String> unseen = wanted.topics.keySet().stream().filter(options::reads)
        .filter(name -> !catalog.last().containsKey(name)).toList();
    for (String name : unseen.isEmpty() ? unseen : missing(unseen))
      if (!known.contains(name))
        findings.add(new Finding(Finding.Kind.TOPIC_GONE, name, "topic '" + name + "' was deleted before it was read"));
    KafkaOffset out = Standing.left(wanted, catalog.last(), findings);
    judge.judge(findings);
    return out;
  }

  @Override public Offset latestOffset(Offset start, ReadLimit limit) {
    KafkaOffset from = (KafkaOffset) start;
    long deadline = System.nanoTime() + ClientOptions.PATIENCE_MS * 1_000_000L;
    for (;;) {
      missing(from.topics.keySet().stream().filter(options::reads).toList());
      SortedMap<String, Topic> today = catalog.last();
      Standing standing = Standing.of(from, today, options::reads);
      judge.judge(standing.findings());
      List<Waiting> waiting = Allotment.waiting(from, standing.position(), today);
      long[] ends = gauge.ends(waiting);
      List<Waiting> left = Allotment.left(waiting, ends);
      if (waiting.isEmpty() || !left.equals(waiting)) {
        gauge.ahead(left);
        return Allotment.end(standing.position(), waiting, ends);
      }
      // What was to be read could not be: it is gone, and the next look says so, or no broker answers.
      if (System.nanoTime() > deadline)
        throw new KafkaFailure(KafkaFailure.UNREACHABLE, "cannot read " + options.described() + ": no broker of "
            + options.client().servers() + " gave any record of " + waiting.get(0).place());
      catalog.doubt();
    }
  }

  @Override public Map<String, Progress> partitions(Offset start, Offset end) {
    var out = new HashMap<String, Progress>();
    ((KafkaOffset) end).topics.forEach((name, to) -> {
      Topic topic = catalog.last().get(name);
      if (topic == null || !topic.id().equals(to.id())) return;
      Place from = ((KafkaOffset) start).topics.get(name);
      for (int i = 0; i < to.next().length; i++) {
        boolean begun = from != null && from.knows(to.id(), i);
        out.put(Partitioned.name(name, i), Progress.of(
            begun, begun && from.next()[i] < to.next()[i], to.next()[i] < topic.ends()[i], topic.begins()[i] >= topic.ends()[i]));
      }
    });
    return out;
  }

  @Override public Offset latestOffset() {
    throw new UnsupportedOperationException("the position depends on where reading starts");
  }

  @Override public InputPartition[] planInputPartitions(Offset start, Offset end) {
    KafkaOffset from = (KafkaOffset) start;
    KafkaOffset to = (KafkaOffset) end;
    List<KafkaSplit> splits = KafkaSplit.plan(from, to, options.splits());
    Set<String> names = splits.stream().flatMap(s -> s.ranges().stream()).map(Range::topic).collect(Collectors.toSet());
    if (!catalog.last().keySet().containsAll(names)) missing(names);
    var findings = new ArrayList<Finding>();
    List<InputPartition> out = new ArrayList<>();
    // Also those of which nothing is left: a task's number says whose transaction it goes on with.
    for (KafkaSplit split : splits) out.add(split.left(catalog.last(), findings));
    judge.judge(findings);
    return out.toArray(InputPartition[]::new);
  }

  @Override public PartitionReaderFactory createReaderFactory() {
    return new KafkaReader.Settings(
        options.client(), options.isolation(), options.run(), options.source(), options.maxRecord(), options.meta(),
        options.failOnLoss(), findings);
  }

  @Override public Offset deserializeOffset(String json) {
    return KafkaOffset.parse(json);
  }

  @Override public void commit(Offset end) {}

  @Override public void stop() {
    probe.close();
    gauge.close();
    ConsumerPool.close(options.run(), options.source());
    catalog.close();
  }

  /** Tells how many offsets are unread, no fewer than records, and how old the oldest of them is. */
  @Override public Map<String, String> metrics(Optional<Offset> consumed) {
    if (consumed.isEmpty()) return Map.of();
    KafkaOffset at = present(KafkaOffset.parse(consumed.get().json()));
    var unread = new HashMap<TopicPartition, Long>();
    long lag = 0;
    for (var each : catalog.last().entrySet()) {
      long[] next = at.topics.get(each.getKey()).next();
      for (int i = 0; i < next.length; i++) {
        long left = each.getValue().ends()[i] - next[i];
        if (left <= 0) continue;
        lag += left;
        unread.put(new TopicPartition(each.getKey(), i), next[i]);
      }
    }
    var out = new LinkedHashMap<String, String>();
    out.put("lagRecords", Long.toString(lag));
    if (lag == 0) out.put("lagMs", "0");
    long now = System.currentTimeMillis();
    probe.oldest(unread).ifPresent(oldest -> out.put("lagMs", Long.toString(Math.max(0, now - oldest))));
    return out;
  }
}
