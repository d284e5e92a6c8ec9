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
 * State and timers in memory, for processors that keep one value of bytes, or one map of them.
 *
 * <p>Stricter than Spark, which only warns: a timer must be above the watermark, registered once, and there to be deleted.
 */
final class MemoryHandle implements StatefulProcessorHandle {
  record Timer(long moment, String key) {}

  /** What is kept under a key, in the form in which another query takes it over. */
  record Held(String key, byte[] value) {}

  private final Map<String, byte[]> values = new LinkedHashMap<>();
  private final Map<String, MemoryMap> maps = new LinkedHashMap<>();
  private final TreeSet<Timer> timers =
      new TreeSet<>(Comparator.comparingLong(Timer::moment).thenComparing(Timer::key));
  private String key;
  private long watermark;

  /** Says whose state and timers the calls that follow concern. */
  void enter(String key, long watermark) {
    this.key = key;
    this.watermark = watermark;
  }

  List<Held> held() {
    var out = new ArrayList<Held>();
    values.forEach((each, value) -> out.add(new Held(each, value)));
    maps.forEach((each, map) -> map.packed().forEach(value -> out.add(new Held(each, value))));
    return out;
  }

  List<Timer> expired(long until) {
    var out = new ArrayList<Timer>();
    for (Timer each : timers) if (each.moment <= until) out.add(each);
    return out;
  }

  @Override public void registerTimer(long moment) {
    if (moment <= watermark) throw new IllegalStateException("timer " + moment + " is not above watermark " + watermark);
    if (!timers.add(new Timer(moment, key))) throw new IllegalStateException("timer " + moment + " is there already");
  }

  @Override public void deleteTimer(long moment) {
    if (!timers.remove(new Timer(moment, key))) throw new IllegalStateException("timer " + moment + " is not there");
  }

  @Override public Iterator<Object> listTimers() {
    List<Object> mine = new ArrayList<>();
    for (Timer each : timers) if (each.key.equals(key)) mine.add(each.moment);
    return CollectionConverters.asScala(mine.iterator());
  }

  @Override public <T> ValueState<T> getValueState(String name, Encoder<T> encoder, TTLConfig ttl) {
    return new ValueState<>() {
      @Override public boolean exists() {
        return values.containsKey(key);
      }

      @SuppressWarnings("unchecked")
      @Override public T get() {
        return (T) values.get(key);
      }

      @Override public void update(T value) {
        values.put(key, (byte[]) value);
      }

      @Override public void clear() {
        values.remove(key);
      }
    };
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
    return (MapState<K, V>) MemoryMap.view(() -> maps.computeIfAbsent(key, k -> new MemoryMap()));
  }

  @Override public <K, V> MapState<K, V> getMapState(String name, TTLConfig ttl, Encoder<K> keys, Encoder<V> rows) {
    return getMapState(name, keys, rows, ttl);
  }

  @Override public QueryInfo getQueryInfo() {
    throw new UnsupportedOperationException();
  }

  @Override public void deleteIfExists(String name) {
    values.clear();
    maps.clear();
  }
}
