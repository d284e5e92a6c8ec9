package io.headgate.kernel.testing;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.apache.spark.sql.streaming.MapState;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/** The map of one bucket, in memory. */
final class MemoryMap {
  private final TreeMap<byte[], byte[]> entries = new TreeMap<>(Arrays::compareUnsigned);

  /** Returns the entries, ordered by the bytes of their keys as state has them. */
  SortedMap<byte[], byte[]> entries() {
    return entries;
  }

  MemoryMap copy() {
    var out = new MemoryMap();
    out.entries.putAll(entries);
    return out;
  }

  /** @param present the map of the bucket that calls concern at the time */
  static MapState<byte[], byte[]> view(Supplier<MemoryMap> present) {
    return new MapState<>() {
      private TreeMap<byte[], byte[]> entries() { return present.get().entries; }

      @Override public boolean exists() { return !entries().isEmpty(); }

      @Override public byte[] getValue(byte[] key) { return entries().get(key); }

      @Override public boolean containsKey(byte[] key) { return entries().containsKey(key); }

      @Override public void updateValue(byte[] key, byte[] value) { entries().put(key, value); }

      @Override public Iterator<Tuple2<byte[], byte[]>> iterator() {
        var pairs = new ArrayList<Tuple2<byte[], byte[]>>();
        entries().forEach((key, value) -> pairs.add(new Tuple2<>(key, value)));
        return CollectionConverters.asScala(pairs.iterator());
      }

      @Override public Iterator<byte[]> keys() {
        return CollectionConverters.asScala(new ArrayList<>(entries().keySet()).iterator());
      }

      @Override public Iterator<byte[]> values() {
        return CollectionConverters.asScala(new ArrayList<>(entries().values()).iterator());
      }

      @Override public void removeKey(byte[] key) { entries().remove(key); }

      @Override public void clear() { entries().clear(); }
    };
  }
}
