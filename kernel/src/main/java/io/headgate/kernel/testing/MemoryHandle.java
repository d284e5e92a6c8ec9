package io.headgate.kernel.testing;

import io.headgate.kernel.broadcast.BucketHandle;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.UUID;
import java.util.function.Supplier;
import org.apache.spark.sql.Encoder;
import org.apache.spark.sql.streaming.ListState;
import org.apache.spark.sql.streaming.MapState;
import org.apache.spark.sql.streaming.QueryInfo;
import org.apache.spark.sql.streaming.StatefulProcessorHandle;
import org.apache.spark.sql.streaming.TTLConfig;
import org.apache.spark.sql.streaming.ValueState;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * State and timers in memory, for processors that keep maps of bytes by bucket.
 *
 * <p>Stricter than Spark, which only warns: a timer must be above the watermark, registered once, and there to be deleted.
 */
final class MemoryHandle implements StatefulProcessorHandle, BucketHandle {
  record Timer(long moment, Integer bucket) {}

  /** An entry of one of the maps. */
  record Held(Integer bucket, String map, byte[] key, byte[] value) {}

  private record Info(UUID getQueryId, UUID getRunId, long getBatchId) implements QueryInfo {}

  private static final UUID QUERY = new UUID(0, 0);

  /** By name, then by bucket. */
  private final Map<String, Map<Integer, MemoryMap>> maps = new LinkedHashMap<>();
  private final TreeSet<Timer> timers =
      new TreeSet<>(Comparator.comparingLong(Timer::moment).thenComparing(Timer::bucket));
  private Integer bucket;
  private long watermark;
  private long batch = -1;

  /** Begins another batch. */
  void begin() {
    batch++;
  }

  /** Says whose state and timers the calls that follow concern. */
  void enter(Integer bucket, long watermark) {
    this.bucket = bucket;
    this.watermark = watermark;
  }

  @Override public <T> T within(Integer other, Supplier<T> read) {
    Integer present = bucket;
    bucket = other;
    try {
      return read.get();
    } finally {
      bucket = present;
    }
  }

  /** Returns state and timers as they are now; what is changed later is not in it. */
  MemoryHandle copy() {
    var out = new MemoryHandle();
    maps.forEach((name, byBucket) -> {
      var buckets = out.maps.computeIfAbsent(name, n -> new LinkedHashMap<>());
      byBucket.forEach((each, map) -> buckets.put(each, map.copy()));
    });
    out.timers.addAll(timers);
    out.batch = batch;
    return out;
  }

  /** Returns all timers, the earliest first. */
  List<Timer> timers() {
    return List.copyOf(timers);
  }

  List<Held> held() {
    var out = new ArrayList<Held>();
    maps.forEach((name, byBucket) -> byBucket.forEach((each, map) -> map.entries().forEach(
        (key, value) -> out.add(new Held(each, name, key, value)))));
    return out;
  }

  List<Timer> expired(long until) {
    var out = new ArrayList<Timer>();
    for (Timer each : timers) if (each.moment <= until) out.add(each);
    return out;
  }

  @Override public void registerTimer(long moment) {
    if (moment <= watermark) throw new IllegalStateException("timer " + moment + " is not above watermark " + watermark);
    if (!timers.add(new Timer(moment, bucket))) throw new IllegalStateException("timer " + moment + " is there already");
  }

  @Override public void deleteTimer(long moment) {
    if (!timers.remove(new Timer(moment, bucket))) throw new IllegalStateException("timer " + moment + " is not there");
  }

  @Override public Iterator<Object> listTimers() {
    List<Object> mine = new ArrayList<>();
    for (Timer each : timers) if (each.bucket.equals(bucket)) mine.add(each.moment);
    return CollectionConverters.asScala(mine.iterator());
  }

  @Override public <T> ValueState<T> getValueState(String name, Encoder<T> encoder, TTLConfig ttl) {
    throw new UnsupportedOperationException();
  }

  @Override public <T> ValueState<T> getValueState(String name, TTLConfig ttl, Encoder<T> encoder) {
    return getValueState(name, encoder, ttl);
  }

  @Override public <T> ListState<T> getListState(String name, Encoder<T> encoder, TTLConfig ttl) {
    throw new UnsupportedOperationException();
  }

  @Override public <T> ListState<T> getListState(String name, TTLConfig ttl, Encoder<T> encoder) {
    throw new UnsupportedOperationException();
  }

  @SuppressWarnings("unchecked")
  @Override public <K, V> MapState<K, V> getMapState(String name, Encoder<K> keys, Encoder<V> rows, TTLConfig ttl) {
    var map = maps.computeIfAbsent(name, n -> new LinkedHashMap<>());
    return (MapState<K, V>) MemoryMap.view(() -> map.computeIfAbsent(bucket, k -> new MemoryMap()));
  }

  @Override public <K, V> MapState<K, V> getMapState(String name, TTLConfig ttl, Encoder<K> keys, Encoder<V> rows) {
    return getMapState(name, keys, rows, ttl);
  }

  @Override public QueryInfo getQueryInfo() {
    return new Info(QUERY, QUERY, batch);
  }

  @Override public void deleteIfExists(String name) {
    maps.get(name).clear();
  }
}
