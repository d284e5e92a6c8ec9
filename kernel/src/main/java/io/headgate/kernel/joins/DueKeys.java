package io.headgate.kernel.joins;

import io.headgate.kernel.rows.BytesEncoder;
import io.headgate.kernel.time.BucketTimer;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.spark.sql.streaming.MapState;
import org.apache.spark.sql.streaming.StatefulProcessorHandle;
import org.apache.spark.sql.streaming.TTLConfig;
import scala.Tuple2;
import scala.collection.Iterator;

/**
 * The keys of a bucket by the moment at which they are due; of the present bucket.
 *
 * <p>State has them in slots of time. The key of a slot is where it begins, in a form that orders bytes as times (i64, big
 * endian, the sign bit flipped). Its value: u8 format (1), then of each key the moment (i64), the length of the key (a number in
 * as few bytes as it takes), the key. A key whose moment has changed leaves its entry behind, which says nothing any more.
 */
final class DueKeys {
  private static final byte FORMAT = 1;
  private static final int SLOTS = 16;
  private static final long LEAST = 1_000;
  private static final long MOST = 600_000;

  private final MapState<byte[], byte[]> state;
  private final long slot;
  /** Entries that were added in the present call, by the beginning of their slot. */
  private final TreeMap<Long, StateBytes> added = new TreeMap<>();
  private long earliestAdded = BucketTimer.NEVER;

  /** @param span how long a key waits at most, in ms */
  DueKeys(StatefulProcessorHandle handle, String name, long span) {
    state = handle.getMapState(name, BytesEncoder.INSTANCE, BytesEncoder.INSTANCE, TTLConfig.NONE());
    slot = Math.max(LEAST, Math.min(MOST, span / SLOTS));
  }

  private static byte[] name(long begin) {
    return ByteBuffer.allocate(Long.BYTES).putLong(begin ^ Long.MIN_VALUE).array();
  }

  private static long begin(byte[] name) {
    return ByteBuffer.wrap(name).getLong() ^ Long.MIN_VALUE;
  }

  /** Adds a key at a moment; {@link #write} brings it into state. */
  void add(long moment, byte[] key) {
    if (moment == BucketTimer.NEVER) return;
    earliestAdded = Math.min(earliestAdded, moment);
    StateBytes into = added.computeIfAbsent(Math.floorDiv(moment, slot) * slot, begin -> new StateBytes());
    put(into, moment, key, 0, key.length);
  }

  private static void put(StateBytes into, long moment, byte[] bytes, int start, int length) {
    into.putLong(moment);
    into.putCount(length);
    into.putRaw(bytes, start, length);
  }

  /** Writes what was added since the last time, and returns the earliest moment of that. */
  long write() {
    added.forEach((begin, entries) -> {
      byte[] name = name(begin);
      byte[] before = state.getValue(name);
      byte[] more = entries.toBytes();
      byte[] out = before == null ? new byte[1 + more.length] : Arrays.copyOf(before, before.length + more.length);
      out[0] = FORMAT;
      System.arraycopy(more, 0, out, out.length - more.length, more.length);
      state.updateValue(name, out);
    });
    added.clear();
    long earliest = earliestAdded;
    earliestAdded = BucketTimer.NEVER;
    return earliest;
  }

  /** Removes the keys that are due up to a moment, and returns them in their order. */
  TreeSet<byte[]> take(long until) {
    var slots = new ArrayList<Tuple2<byte[], byte[]>>();
    for (Iterator<Tuple2<byte[], byte[]>> all = state.iterator(); all.hasNext();) {
      Tuple2<byte[], byte[]> next = all.next();
      if (begin(next._1()) > until) break;
      slots.add(next);
    }
    var keys = new TreeSet<byte[]>(Arrays::compareUnsigned);
    for (Tuple2<byte[], byte[]> each : slots) take(each._1(), each._2(), until, keys);
    return keys;
  }

  private void take(byte[] name, byte[] held, long until, TreeSet<byte[]> keys) {
    var reader = reader(held);
    var left = new StateBytes();
    left.putByte(FORMAT);
    boolean some = false;
    while (reader.hasMore()) {
      long moment = reader.getLong();
      int length = (int) reader.getCount();
      int start = reader.position();
      reader.skip(length);
      if (moment <= until) {
        keys.add(Arrays.copyOfRange(held, start, start + length));
      } else {
        some = true;
        put(left, moment, held, start, length);
      }
    }
    if (some) state.updateValue(name, left.toBytes());
    else state.removeKey(name);
  }

  /** Returns the earliest moment at which a key is due. */
  long earliest() {
    long earliest = BucketTimer.NEVER;
    for (Iterator<Tuple2<byte[], byte[]>> all = state.iterator(); all.hasNext();) {
      Tuple2<byte[], byte[]> next = all.next();
      // Slots of another length may begin in between.
      if (begin(next._1()) >= earliest) break;
      StateBytes reader = reader(next._2());
      while (reader.hasMore()) {
        earliest = Math.min(earliest, reader.getLong());
        reader.skip((int) reader.getCount());
      }
    }
    return earliest;
  }

  private static StateBytes reader(byte[] held) {
    if (held[0] != FORMAT) throw new IllegalStateException("STATE_INCOMPATIBLE: cannot read when keys are due: its format is " + held[0]);
    var reader = new StateBytes();
    reader.point(held, 1);
    return reader;
  }
}
