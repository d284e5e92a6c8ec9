package io.headgate.kernel.testing;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
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
 * State and timers in memory, for processors that keep one map of bytes by bucket.
 *
 * <p>Stricter than Spark, which only warns: a timer must be above the watermark, registered once, and there to be deleted.
 */
final class MemoryHandle implements StatefulProcessorHandle {
  record Timer(long moment, Integer bucket) {}

  /** What is kept of a key, in the form in which another query takes it over. */
  record Held(Integer bucket, byte[] entry) {}

  private final Map<Integer, MemoryMap> maps = new LinkedHashMap<>();
  private final TreeSet<Timer> timers =
      new TreeSet<>(Comparator.comparingLong(Timer::moment).thenComparing(Timer::bucket));
  private Integer bucket;
  private long watermark;

  /** Says whose state and timers the calls that follow concern. */
  void enter(Integer bucket, long watermark) {
    this.bucket = bucket;
    this.watermark = watermark;
  }

  /** Returns all timers, the earliest first. */
  List<Timer> timers() {
    return List.copyOf(timers);
  }

  List<Held> held() {
    var out = new ArrayList<Held>();
    maps.forEach((each, map) -> map.packed().forEach(entry -> out.add(new Held(each, entry))));
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
    return (MapState<K, V>) MemoryMap.view(() -> maps.computeIfAbsent(bucket, k -> new MemoryMap()));
  }

  @Override public <K, V> MapState<K, V> getMapState(String name, TTLConfig ttl, Encoder<K> keys, Encoder<V> rows) {
    return getMapState(name, keys, rows, ttl);
  }

  @Override public QueryInfo getQueryInfo() {
    throw new UnsupportedOperationException();
  }

  @Override public void deleteIfExists(String name) {
    maps.clear();
  }
}
