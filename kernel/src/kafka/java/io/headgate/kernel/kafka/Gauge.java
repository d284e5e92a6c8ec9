package io.headgate.kernel.kafka;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;

/**
 * Measures records before a batch is planned, so that it is bounded by their bytes; serves the query's thread.
 *
 * <p>Where a batch ends is logged before its tasks fetch anything, and brokers know no sizes of ranges. So the driver reads
 * what the batch may have, each record once, and keeps how large it was. While a batch runs, it measures what comes next.
 */
final class Gauge implements AutoCloseable {
  /**
   * What a partition has to read.
   *
   * @param id Kafka's id of the topic
   * @param from the first offset
   * @param to the offset behind the last
   */
  record Waiting(TopicPartition place, String id, long from, long to) {}

  private record Measured(String id, SizeCurve curve) {}

  /** No record is larger unless its topic was told otherwise: Kafka's default of {@code max.message.bytes}. */
  private static final long LARGEST = 1L << 20;
  /** How many points of a curve the bytes of a batch have. */
  private static final long POINTS = 4096;
  private static final Duration POLL = Duration.ofMillis(200);
  /** A partition that gives nothing for so long is left out of the batch. */
  private static final long STALL_NANOS = 5_000_000_000L;
  /** Tasks check sums again, and the driver's memory is not for records. */
  private static final Map<String, String> SMALL = Map.of(
      "max.partition.fetch.bytes", "1048576", "fetch.max.bytes", "8388608", "check.crcs", "false");

  private final SourceOptions options;
  private final ExecutorService thread = Executors.newSingleThreadExecutor(Gauge::daemon);
  /** How many batches wait to be planned: what is measured ahead gives way to them. */
  private final AtomicInteger asked = new AtomicInteger();
  private final Map<TopicPartition, Measured> measured = new HashMap<>();
  private volatile Consumer<ByteBuffer, ByteBuffer> consumer;
  /** The largest record that was measured; 0 before there was any. */
  private volatile long largest;
  private int turn;

  Gauge(SourceOptions options) {
    this.options = options;
  }

  private static Thread daemon(Runnable work) {
    var out = new Thread(work, "headgate-kafka-gauge");
    out.setDaemon(true);
    return out;
  }

  /** Returns where a batch ends that has no more than the source's bytes, or one larger record; by partition. */
  long[] ends(List<Waiting> waiting) {
    if (fits(waiting)) return waiting.stream().mapToLong(Waiting::to).toArray();
    asked.incrementAndGet();
    try {
      return thread.submit(() -> {
        asked.decrementAndGet();
        return measure(waiting, false);
      }).get();
    } catch (InterruptedException e) {
      throw KafkaFailure.interrupted();
    } catch (ExecutionException e) {
      throw KafkaFailure.of(e.getCause(), options.client().servers(), "measure records of " + options.described());
    }
  }

  /** Measures what the next batch may have while this one runs; what goes wrong is met again when it is asked for. */
  void ahead(List<Waiting> waiting) {
    if (fits(waiting)) return;
    try {
      thread.execute(() -> {
        try {
          measure(waiting, true);
        } catch (RuntimeException e) {
          // The consumer was closed, and the next batch opens another.
        }
      });
    } catch (RejectedExecutionException e) {
      // The source has ended.
    }
  }

  /** Returns whether so few offsets wait that they need not be measured: records as large as may be are two batches' bytes. */
  private boolean fits(List<Waiting> waiting) {
    long offsets = waiting.stream().mapToLong(each -> each.to - each.from).sum();
    if (offsets <= 1) return true;
    return largest > 0 && offsets <= 2 * options.maxBytes() / Math.max(LARGEST, largest);
  }

  private long[] measure(List<Waiting> waiting, boolean ahead) {
    try {
      return measureWith(open(), waiting, ahead);
    } catch (RuntimeException e) {
      closeConsumer();
      throw e;
    }
  }

  private long[] measureWith(Consumer<ByteBuffer, ByteBuffer> reader, List<Waiting> waiting, boolean ahead) {
    begin(reader, waiting);
    var lost = new HashSet<TopicPartition>();
    long movedAt = System.nanoTime();
    for (;;) {
      Shares shares = shares(waiting);
      Set<TopicPartition> wanted = wanted(waiting, shares.isShort());
      wanted.removeAll(lost);
      boolean stalled = System.nanoTime() - movedAt > STALL_NANOS;
      if (wanted.isEmpty() || stalled || ahead && asked.get() > 0) {
        if (!ahead) turn = nextTurn(waiting, shares.ends());
        return shares.ends();
      }
      reader.pause(reader.assignment());
      reader.resume(wanted);
      try {
        if (take(reader.poll(POLL), wanted, reader)) movedAt = System.nanoTime();
      } catch (OffsetOutOfRangeException e) {
        // Records were deleted since the topics were looked at; the next look finds out.
        lost.addAll(e.partitions());
        measured.keySet().removeAll(lost);
        begin(reader, waiting);
      }
    }
  }

  /** Has a curve for each partition that covers where it goes on. */
  private void begin(Consumer<ByteBuffer, ByteBuffer> reader, List<Waiting> waiting) {
    var places = new HashSet<TopicPartition>();
    for (Waiting each : waiting) places.add(each.place);
    if (!reader.assignment().containsAll(places)) {
      places.addAll(reader.assignment());
      reader.assign(places);
    }
    for (Waiting each : waiting) {
      Measured known = measured.get(each.place);
      if (known != null && known.id.equals(each.id) && known.curve.covers(each.from)) {
        known.curve.forget(each.from);
        continue;
      }
      measured.put(each.place, new Measured(each.id, new SizeCurve(each.from, options.maxBytes() / POINTS)));
      reader.seek(each.place, each.from);
    }
  }

  private Shares shares(List<Waiting> waiting) {
    var curves = new ArrayList<SizeCurve>();
    for (Waiting each : waiting) curves.add(measured.get(each.place).curve);
    return Shares.of(
        curves, waiting.stream().mapToLong(Waiting::from).toArray(), waiting.stream().mapToLong(Waiting::to).toArray(),
        options.maxBytes(), turn % waiting.size());
  }

  private static Set<TopicPartition> wanted(List<Waiting> waiting, boolean[] isShort) {
    var out = new HashSet<TopicPartition>();
    for (int i = 0; i < isShort.length; i++) if (isShort[i]) out.add(waiting.get(i).place);
    return out;
  }

  /** Returns the first partition that had something and gave nothing; 0 where there is none. */
  private int nextTurn(List<Waiting> waiting, long[] ends) {
    for (int n = 0; n < ends.length; n++) {
      int i = (turn + n) % ends.length;
      if (ends[i] == waiting.get(i).from) return i;
    }
    return 0;
  }

  private boolean take(
      ConsumerRecords<ByteBuffer, ByteBuffer> records, Set<TopicPartition> wanted, Consumer<ByteBuffer, ByteBuffer> reader) {
    for (TopicPartition place : records.partitions()) {
      SizeCurve curve = measured.get(place).curve;
      for (var record : records.records(place)) {
        long size = size(record);
        if (size > largest) largest = size;
        curve.add(record.offset(), size);
      }
    }
    boolean moved = false;
    for (TopicPartition place : wanted) {
      moved |= records.nextOffsets().containsKey(place);
      // Behind the last record there may be offsets without one: ends of transactions, and what compaction removed.
      measured.get(place).curve.reach(reader.position(place));
    }
    return moved;
  }

  private long size(ConsumerRecord<ByteBuffer, ByteBuffer> record) {
    long size = Math.max(0, record.serializedValueSize()) + Math.max(0, record.serializedKeySize());
    if (!options.meta()) return size;
    for (Header each : record.headers()) size += each.key().length() + (each.value() == null ? 0 : each.value().length);
    return size;
  }

  private Consumer<ByteBuffer, ByteBuffer> open() {
    if (consumer != null) return consumer;
    var own = new HashMap<>(SMALL);
    own.put("isolation.level", options.isolation());
    consumer = options.client().openConsumer(own);
    return consumer;
  }

  private void closeConsumer() {
    measured.clear();
    Consumer<ByteBuffer, ByteBuffer> mine = consumer;
    consumer = null;
    if (mine != null) mine.close(CloseOptions.timeout(Duration.ZERO));
  }

  @Override public void close() {
    if (thread.isShutdown()) return;
    thread.execute(this::closeConsumer);
    thread.shutdown();
    Consumer<ByteBuffer, ByteBuffer> mine = consumer;
    if (mine != null) mine.wakeup();
  }
}
