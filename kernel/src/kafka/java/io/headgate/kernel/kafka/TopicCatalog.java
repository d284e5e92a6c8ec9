package io.headgate.kernel.kafka;

import java.time.Duration;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/**
 * What topics there are, and where each of their partitions begins and ends; serves the query's thread.
 *
 * <p>Where partitions end is asked each time, in one round trip. Topics, and where partitions begin, change seldom and are
 * asked every 2 s.
 */
final class TopicCatalog implements AutoCloseable {
  /**
   * A topic as it is.
   *
   * @param id Kafka's, which a topic made anew does not share
   * @param begins the first offset there is, by partition
   * @param ends the offset behind the last one that may be read, by partition
   * @param tops the offset behind the last one there is, where transactions may be open before it
   */
  record Topic(String id, long[] begins, long[] ends, long[] tops) {}

  private static final long ASK_EVERY_NANOS = 2_000_000_000L;
  /** Spark asks twice before a batch, at once: where it ends, and how far to read. */
  private static final long SAME_LOOK_NANOS = 10_000_000L;
  /** A topic that vanishes between two requests would be waited for; after this long topics are asked for again. */
  private static final int CALL_MS = 5_000;

  private final SourceOptions options;
  private Admin admin;
  private SortedMap<String, TopicDescription> described = new TreeMap<>();
  private Map<TopicPartition, Long> begins = Map.of();
  private Map<TopicPartition, Long> tops = Map.of();
  private SortedMap<String, Topic> topics = new TreeMap<>();
  private long describedAt;
  private long lookedAt;

  TopicCatalog(SourceOptions options) {
    this.options = options;
  }

  /** Returns the source's topics as they are now, by name; those that are not there are left out. */
  SortedMap<String, Topic> look() {
    if (lookedAt != 0 && System.nanoTime() - lookedAt < SAME_LOOK_NANOS) return topics;
    long deadline = System.nanoTime() + ClientOptions.PATIENCE_MS * 1_000_000L;
    boolean again = false;
    for (;;) {
      try {
        return lookOnce(again);
      } catch (UnknownTopicOrPartitionException | TimeoutException e) {
        if (System.nanoTime() > deadline) throw failure(e);
        again = true;
      }
    }
  }

  /** Returns the topics as they were at the last look. */
  SortedMap<String, Topic> last() {
    return lookedAt == 0 ? look() : topics;
  }

  /** Has the next look ask for topics, however fresh they are. */
  void doubt() {
    describedAt = 0;
    lookedAt = 0;
  }

  private SortedMap<String, Topic> lookOnce(boolean anew) {
    boolean due = anew || describedAt == 0 || System.nanoTime() - describedAt >= ASK_EVERY_NANOS;
    if (due) described = describe();
    ListOffsetsResult ends = ask(OffsetSpec.latest(), isolation());
    if (due) {
      ListOffsetsResult first = ask(OffsetSpec.earliest(), isolation());
      ListOffsetsResult top = ask(OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED);
      begins = take(first);
      tops = take(top);
      describedAt = System.nanoTime();
    }
    topics = joined(take(ends));
    lookedAt = System.nanoTime();
    return topics;
  }

  private SortedMap<String, Topic> joined(Map<TopicPartition, Long> ends) {
    var out = new TreeMap<String, Topic>();
    described.forEach((name, topic) -> {
      int n = topic.partitions().size();
      out.put(name, new Topic(
          topic.topicId().toString(), byPartition(name, n, begins), byPartition(name, n, ends), byPartition(name, n, tops)));
    });
    return Collections.unmodifiableSortedMap(out);
  }

  private static long[] byPartition(String topic, int count, Map<TopicPartition, Long> offsets) {
    long[] out = new long[count];
    for (int i = 0; i < count; i++) out[i] = offsets.get(new TopicPartition(topic, i));
    return out;
  }

  /** Returns the first offset of a time or later by partition; that of a partition with none is where it ends. */
  Map<String, long[]> offsetsAt(long timestamp) {
    SortedMap<String, Topic> now = look();
    Map<TopicPartition, Long> found;
    try {
      found = take(ask(OffsetSpec.forTimestamp(timestamp), isolation()));
    } catch (UnknownTopicOrPartitionException | TimeoutException e) {
      throw failure(e);
    }
    var out = new HashMap<String, long[]>();
    now.forEach((name, topic) -> {
      long[] next = byPartition(name, topic.ends.length, found);
      for (int i = 0; i < next.length; i++) if (next[i] < 0) next[i] = topic.ends[i];
      out.put(name, next);
    });
    return out;
  }

  private SortedMap<String, TopicDescription> describe() {
    Collection<String> names = options.pattern() == null ? options.topics() : matching();
    var out = new TreeMap<String, TopicDescription>();
    if (names.isEmpty()) return out;
    var found = admin().describeTopics(
        TopicCollection.ofTopicNames(names), new DescribeTopicsOptions().timeoutMs(CALL_MS)).topicNameValues();
    found.forEach((name, future) -> {
      try {
        out.put(name, get(future));
      } catch (UnknownTopicOrPartitionException e) {
        // Not there: whoever needs it finds it missing.
      }
    });
    return out;
  }

  private Collection<String> matching() {
    Collection<String> all = get(admin().listTopics(new ListTopicsOptions().timeoutMs(CALL_MS)).names());
    return all.stream().filter(options::reads).sorted().toList();
  }

  private IsolationLevel isolation() {
    return IsolationLevel.valueOf(options.isolation().toUpperCase(Locale.ROOT));
  }

  private ListOffsetsResult ask(OffsetSpec what, IsolationLevel isolation) {
    var wanted = new HashMap<TopicPartition, OffsetSpec>();
    described.forEach((name, topic) ->
        topic.partitions().forEach(p -> wanted.put(new TopicPartition(name, p.partition()), what)));
    return admin().listOffsets(wanted, new ListOffsetsOptions(isolation).timeoutMs(CALL_MS));
  }

  private Map<TopicPartition, Long> take(ListOffsetsResult result) {
    var out = new HashMap<TopicPartition, Long>();
    for (var each : get(result.all()).entrySet()) out.put(each.getKey(), each.getValue().offset());
    return out;
  }

  /** Waits for an answer; one that may come with another try is thrown as it is. */
  private <T> T get(KafkaFuture<T> future) {
    try {
      return future.get(ClientOptions.PATIENCE_MS, TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      throw KafkaFailure.interrupted();
    } catch (ExecutionException e) {
      if (e.getCause() instanceof UnknownTopicOrPartitionException unknown) throw unknown;
      if (e.getCause() instanceof TimeoutException late) throw late;
      throw failure(e);
    } catch (java.util.concurrent.TimeoutException e) {
      throw new TimeoutException("no answer within " + ClientOptions.PATIENCE_MS / 1000 + " s");
    }
  }

  private RuntimeException failure(Throwable e) {
    return KafkaFailure.of(e, options.client().servers(), "look after " + options.described());
  }

  private Admin admin() {
    if (admin == null) admin = options.client().openAdmin();
    return admin;
  }

  @Override public void close() {
    if (admin == null) return;
    // An interrupted thread would not wait for the client's own to end.
    boolean interrupted = Thread.interrupted();
    admin.close(Duration.ofSeconds(5));
    admin = null;
    if (interrupted) Thread.currentThread().interrupt();
  }
}
