package io.headgate.kernel.process;

import io.headgate.kernel.rows.BytesEncoder;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.streaming.MapState;
import org.apache.spark.sql.streaming.StatefulProcessorHandle;
import org.apache.spark.sql.streaming.TTLConfig;
import scala.Tuple2;
import scala.collection.Iterator;

/**
 * Keys in the order of the times at which something of theirs is due; of the present bucket.
 *
 * <p>The key of an entry in state is the time, in a form that orders bytes as times (big endian), and 16 bytes of the SHA-256 of
 * the key: of one length, so that state iterates them in order. The value is the key.
 */
final class TimeIndex {
  /** The time of an index without entries. */
  static final long NEVER = Long.MAX_VALUE;

  private static final int HASH = 16;

  private final MapState<byte[], byte[]> state;
  private final MessageDigest sum;
  /** Entries up to {@link #bound} that were removed since {@link #take}. */
  private final TreeSet<byte[]> removed = entries();
  private long bound;
  private long next;

  /** A key and a time at which it is due. */
  record Due(byte[] entry, byte[] key) {
    long time() {
      return timeOf(entry);
    }
  }

  TimeIndex(StatefulProcessorHandle handle, String name) {
    state = handle.getMapState(name, BytesEncoder.INSTANCE, BytesEncoder.INSTANCE, TTLConfig.NONE());
    sum = digest();
  }

  /** Returns what hashes the keys of entries. */
  static MessageDigest digest() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Returns an empty set of entries. */
  static TreeSet<byte[]> entries() {
    return new TreeSet<>(Arrays::compareUnsigned);
  }

  static long timeOf(byte[] entry) {
    return ByteBuffer.wrap(entry).getLong() ^ Long.MIN_VALUE;
  }

  /** Returns the entry of a key at a time. */
  byte[] entry(long time, byte[] key) {
    return entry(time, key, sum);
  }

  static byte[] entry(long time, byte[] key, MessageDigest sum) {
    byte[] hash = sum.digest(key);
    return ByteBuffer.allocate(Long.BYTES + HASH).putLong(time ^ Long.MIN_VALUE).put(hash, 0, HASH).array();
  }

  /** Puts an entry as an earlier run kept it. */
  void put(byte[] entry, byte[] key) {
    state.updateValue(entry, key);
  }

  boolean has(byte[] entry) {
    return state.containsKey(entry);
  }

  void remove(byte[] entry) {
    if (timeOf(entry) <= bound) removed.add(entry);
    state.removeKey(entry);
  }

  /**
   * Begins a call: returns the entries up to a moment, earliest first. They stay until they are claimed.
   *
   * @param without entries that are left out; null for none
   * @param most how many are returned
   */
  List<Due> take(long until, Set<byte[]> without, int most) {
    removed.clear();
    bound = until;
    next = NEVER;
    var out = new ArrayList<Due>();
    for (Iterator<Tuple2<byte[], byte[]>> all = state.iterator(); all.hasNext();) {
      Tuple2<byte[], byte[]> each = all.next();
      long time = timeOf(each._1());
      if (time > until || out.size() == most) {
        next = time;
        break;
      }
      if (without == null || !without.contains(each._1())) out.add(new Due(each._1(), each._2()));
    }
    return out;
  }

  /** Returns the time of the first entry that {@link #take} did not come to. */
  long next() {
    return next;
  }

  /** Removes an entry that {@link #take} returned; returns false if it has been removed since, and is no longer due. */
  boolean claim(byte[] entry) {
    if (removed.contains(entry)) return false;
    state.removeKey(entry);
    return true;
  }

  /** Returns the time of the first entry. */
  long earliest() {
    Iterator<byte[]> all = state.keys();
    return all.hasNext() ? timeOf(all.next()) : NEVER;
  }
}
