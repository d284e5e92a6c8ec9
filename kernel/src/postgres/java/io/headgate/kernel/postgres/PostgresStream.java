package io.headgate.kernel.postgres;

import io.headgate.kernel.CodedFailure;
import io.headgate.kernel.EventFeed;
import java.util.ArrayDeque;
import java.util.ArrayList;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Reads a table from its refreshes. The first one is read before the first batch; further ones beside the batches, each once
 * the interval has passed.
 */
final class PostgresStream implements MicroBatchStream, SupportsAdmissionControl {
  /** The most bytes of a page, which a task reads at once. */
  private static final int PAGE_BYTES = 4 << 20;
  /** A refresh that failed is tried again after this time, or after the interval if that is shorter. */
  private static final long RETRY_MS = 10_000;
  /** So many batches later no checkpoint waits to be linked any more that has not taken what a batch took. */
  private static final int LINKED_AFTER = 32;

  private final Spool spool;
  private final Refresher refresher;
  private final String topic;
  private final String run;
  private final String source;
  private final String start;
  private final long everyMs;
  private final long maxBytes;
  private final long maxRecord;
  private final ArrayDeque<Long> taken = new ArrayDeque<>();
  private volatile Thread reading;
  private volatile long retryAt;

  PostgresStream(CaseInsensitiveStringMap options, String checkpoint) {
    SparkSession spark = SparkSession.active();
    spool = new Spool(checkpoint, ((org.apache.spark.sql.classic.SparkSession) spark).sessionState().newHadoopConf());
    maxBytes = options.getLong("max.bytes", 64L << 20);
    TableRead table = TableRead.parse(options.get("table"), options.get("columns"), options.get("key"));
    refresher = new Refresher(
        PostgresClient.parse(options.get("client")), table, spool, (int) Math.max(1, Math.min(PAGE_BYTES, maxBytes)));
    topic = options.get("topic");
    run = options.get("gate");
    source = options.get("gate.source");
    start = options.getOrDefault("start", "earliest");
    everyMs = options.getLong("refresh.ms", 0);
    maxRecord = options.getLong("max.record", 1L << 20);
  }

  private long base() {
    return start.startsWith("{") ? RowsOffset.parse(start).rows : 0;
  }

  @Override public Offset initialOffset() {
    return new RowsOffset(base());
  }

  @Override public Offset reportLatestOffset() {
    Spool.Refresh newest = spool.newest();
    // Without it there is nothing to go on with: what keeps it from being read ends the attempt.
    if (newest == null) newest = refreshed(refresher.run(base()));
    else if (isDue(newest)) readBeside();
    return new RowsOffset(newest.end());
  }

  private boolean isDue(Spool.Refresh newest) {
    long now = System.currentTimeMillis();
    return everyMs > 0 && reading == null && now >= retryAt && now - newest.at() >= everyMs;
  }

  private void readBeside() {
    var thread = new Thread(() -> {
      try {
        refreshed(refresher.run(0));
      } catch (RuntimeException e) {
        retryAt = System.currentTimeMillis() + Math.min(RETRY_MS, everyMs);
        EventFeed.of(run).add("REFRESH_FAILED", source,
            "topic '" + topic + "' was not refreshed, and stays as it is: " + e.getMessage());
      } finally {
        reading = null;
      }
    }, "headgate-refresh-" + source);
    thread.setDaemon(true);
    reading = thread;
    thread.start();
  }

  private Spool.Refresh refreshed(Spool.Refresh refresh) {
    if (refresher.duplicates() > 0)
      EventFeed.of(run).add("DUPLICATE_KEYS", source, "topic '" + topic + "': " + refresher.duplicates()
          + " rows have the key of another row; of each key one row was taken");
    return refresh;
  }

  @Override public Offset latestOffset(Offset from, ReadLimit limit) {
    long at = ((RowsOffset) from).rows;
    long end = at;
    long bytes = 0;
    for (Spool.Refresh refresh : spool.all()) {
      long first = refresh.first();
      for (Spool.Page page : refresh.changes()) {
        first += page.rows();
        if (first <= at) continue;
        if (bytes > 0 && bytes + page.bytes() > maxBytes) return new RowsOffset(end);
        bytes += page.bytes();
        end = first;
      }
    }
    return new RowsOffset(end);
  }

  @Override public Offset latestOffset() {
    throw new UnsupportedOperationException("the position depends on where reading starts");
  }

  @Override public ReadLimit getDefaultReadLimit() {
    return ReadLimit.allAvailable();
  }

  @Override public InputPartition[] planInputPartitions(Offset from, Offset to) {
    long at = ((RowsOffset) from).rows;
    long end = ((RowsOffset) to).rows;
    var out = new ArrayList<InputPartition>();
    for (Spool.Refresh refresh : spool.all()) {
      long first = refresh.first();
      for (int i = 0; i < refresh.changes().size(); i++) {
        long next = first + refresh.changes().get(i).rows();
        if (first >= at && next <= end) {
          out.add(new PageSplit(
              spool.changes(refresh.number(), refresh.token(), i).toString(), topic, first, refresh.at(), maxRecord));
          at = next;
        }
        first = next;
      }
    }
    if (at != end)
      throw new PostgresFailure(CodedFailure.DATA_LOST, "cannot read topic '" + topic + "' again from change " + at + " to " + end
          + ": its refreshes are not in the checkpoint");
    return out.toArray(InputPartition[]::new);
  }

  @Override public PartitionReaderFactory createReaderFactory() {
    return PageReader::new;
  }

  @Override public Offset deserializeOffset(String json) {
    return RowsOffset.parse(json);
  }

  @Override public void commit(Offset end) {
    taken.add(((RowsOffset) end).rows);
    if (taken.size() <= LINKED_AFTER || reading != null) return;
    while (taken.size() > LINKED_AFTER + 1) taken.remove();
    spool.clean(taken.peek());
  }

  @Override public void stop() {
    Thread thread = reading;
    if (thread != null) thread.interrupt();
  }
}
