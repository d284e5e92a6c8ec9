package io.headgate.kernel.pulsar;

import io.headgate.kernel.pulsar.TopicCatalog.Topic;
import java.io.Serializable;
import java.util.Collection;
import org.apache.spark.SparkContext;
import org.apache.spark.util.LongAccumulator;

/**
 * How large records are, by what was read so far; serves the query's thread.
 *
 * <p>What a broker knows is entries and how many bytes it stores: batched, and often compressed.
 */
final class Volume {
  /** What tasks count. */
  record Counters(LongAccumulator records, LongAccumulator entries, LongAccumulator bytes) implements Serializable {}

  /** How many bytes a stored one is taken for before any was read: JSON in batches is often compressed. */
  private static final double FIRST_RATIO = 2;
  /** What the readers of all partitions may hold ahead, by estimate; a small record costs little, and a large one much. */
  private static final long AHEAD_BYTES = 64L << 20;
  private static final int LEAST_AHEAD = 4;
  private static final int MOST_AHEAD = 5_000;
  /** Before any record was seen: enough for batches of small ones, and not too much of large ones. */
  private static final int FIRST_AHEAD = 200;
  /** A batch of messages is smaller than this unless its producer says otherwise, so a larger entry is one message. */
  private static final long LARGE_ENTRY = 256 << 10;

  private final Counters counters;
  private long planned;
  private double batch;

  Volume(SparkContext spark) {
    counters = new Counters(spark.longAccumulator(), spark.longAccumulator(), spark.longAccumulator());
  }

  Counters counters() {
    return counters;
  }

  /** Takes note of a batch; what it counts is there by the next one. */
  void planned(long stored) {
    planned += stored;
  }

  /** Returns how many stored bytes give so many when they are read; what is planned meanwhile is not counted yet. */
  long stored(long bytes) {
    double ratio = planned == 0 ? FIRST_RATIO : Math.max(1, counters.bytes.value() / (double) planned);
    return Math.max(1, (long) (bytes / ratio));
  }

  /** Returns whether it is known about how many records an entry has. */
  boolean knowsBatches() {
    return counters.entries.value() > 0 || batch > 0;
  }

  /** Takes note of how many records an entry has, for as long as none was read. */
  void sampled(double records) {
    batch = records;
  }

  /** Returns about how many records so many entries have. */
  long records(long entries) {
    if (entries == 0 || !knowsBatches()) return entries;
    long read = counters.entries.value();
    double mean = read > 0 ? (double) counters.records.value() / read : batch;
    return Math.max(1, Math.round(entries * mean));
  }

  /** Returns how many messages a reader fetches ahead. */
  int queue(Collection<Topic> topics) {
    long seen = counters.records.value();
    long mean = seen == 0 ? largest(topics) : counters.bytes.value() / seen;
    long readers = Math.max(1, topics.stream().mapToLong(topic -> topic.partitions().size()).sum());
    long most = seen == 0 ? FIRST_AHEAD : MOST_AHEAD;
    return (int) Math.max(LEAST_AHEAD, Math.min(most, AHEAD_BYTES / readers / Math.max(1, mean)));
  }

  private static long largest(Collection<Topic> topics) {
    long mean = topics.stream().flatMap(topic -> topic.partitions().stream()).flatMap(each -> each.all().stream())
        .mapToLong(ledger -> ledger.bytes(1)).max().orElse(0);
    return mean < LARGE_ENTRY ? 0 : mean;
  }
}
