package io.headgate.kernel.joins;

import io.headgate.kernel.rows.BytesEncoder;
import io.headgate.kernel.time.BucketTimer;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.SortedMap;
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
 *
 * <p>What does not fit into a slot goes into narrow slots, so that a bucket that is woken often does not rewrite all that is to
 * come. Their keys end with u8 1.
 */
final class DueKeys {
  private static final byte FORMAT = 1;
  private static final int NARROW_SLOTS = 32;
  private static final long LEAST = 1_000;
  private static final long MOST = 75_000;
  /** How many narrow slots a slot is as long as. */
  private static final int WIDTH = 8;
  /** How many bytes a slot has room for. */
  private static final int ROOM = 2 << 10;

  private final MapState<byte[], byte[]> state;
  private final long narrowSlot;
  private final long slot;
  /** Entries that were added in the present call, by the beginning of their narrow slot. */
  private final TreeMap<Long, StateBytes> added = new TreeMap<>();
  private long earliestAdded = BucketTimer.NEVER;
  private long earliestLeft = BucketTimer.NEVER;

  /** @param span how long a key waits at most, in ms */
  DueKeys(StatefulProcessorHandle handle, String name, long span) {
    state = handle.getMapState(name, BytesEncoder.INSTANCE, BytesEncoder.INSTANCE, TTLConfig.NONE());
    narrowSlot = Math.max(LEAST, Math.min(MOST, span / NARROW_SLOTS));
    slot = WIDTH * narrowSlot;
  }

  private static long begin(long moment, long slot) {
    return Math.floorDiv(moment, slot) * slot;
  }

  private static byte[] name(long begin) {
    return ByteBuffer.allocate(Long.BYTES).putLong(begin ^ Long.MIN_VALUE).array();
  }

  private static byte[] narrowName(long begin) {
    return ByteBuffer.allocate(Long.BYTES + 1).putLong(begin ^ Long.MIN_VALUE).put((byte) 1).array();
  }

  private static long begin(byte[] name) {
    return ByteBuffer.wrap(name).getLong() ^ Long.MIN_VALUE;
  }

  /** Adds a key at a moment; {@link #write} brings it into state. */
  void add(long moment, byte[] key) {
    if (moment == BucketTimer.NEVER) return;
    earliestAdded = Math.min(earliestAdded, moment);
    StateBytes into = added.computeIfAbsent(begin(moment, narrowSlot), begin -> new StateBytes());
    put(into, moment, key, 0, key.length);
  }

  private static void put(StateBytes into, long moment, byte[] bytes, int start, int length) {
    into.putLong(moment);
    into.putCount(length);
    into.putRaw(bytes, start, length);
  }

  /** Writes what was added since the last time, and returns the earliest moment of that. */
  long write() {
    while (!added.isEmpty()) {
      long begin = begin(added.firstKey(), slot);
      SortedMap<Long, StateBytes> entries = added.headMap(begin + slot);
      byte[] name = name(begin);
      byte[] held = state.getValue(name);
      int size = held == null ? 1 : held.length;
      for (StateBytes more : entries.values()) size += more.position();
      if (size <= ROOM) append(name, held, size, entries.values());
      else entries.forEach(this::writeNarrow);
      entries.clear();
    }
    long earliest = earliestAdded;
    earliestAdded = BucketTimer.NEVER;
    return earliest;
  }

  private void writeNarrow(long begin, StateBytes more) {
    byte[] name = narrowName(begin);
    byte[] held = state.getValue(name);
    append(name, held, (held == null ? 1 : held.length) + more.position(), List.of(more));
  }

  private void append(byte[] name, byte[] held, int size, Collection<StateBytes> entries) {
    byte[] out = held == null ? new byte[size] : Arrays.copyOf(held, size);
    out[0] = FORMAT;
    int at = held == null ? 1 : held.length;
    for (StateBytes more : entries) at = more.copyTo(out, at);
    state.updateValue(name, out);
  }

  /** Removes the keys that are due up to a moment, and returns them in their order. */
  TreeSet<byte[]> take(long until) {
    earliestLeft = BucketTimer.NEVER;
    var slots = new ArrayList<Tuple2<byte[], byte[]>>();
    for (Iterator<Tuple2<byte[], byte[]>> all = state.iterator(); all.hasNext();) {
      Tuple2<byte[], byte[]> next = all.next();
      long begin = begin(next._1());
      // Slots overlap: one that begins later may have an earlier moment.
      if (begin > until && begin >= earliestLeft) break;
      if (begin <= until) slots.add(next);
      else look(next._2());
    }
    var keys = new TreeSet<byte[]>(Arrays::compareUnsigned);
    for (Tuple2<byte[], byte[]> each : slots) take(each._1(), each._2(), until, keys);
    return keys;
  }

  private void look(byte[] held) {
    for (StateBytes reader = reader(held); reader.hasMore(); reader.skip((int) reader.getCount()))
      earliestLeft = Math.min(earliestLeft, reader.getLong());
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
        earliestLeft = Math.min(earliestLeft, moment);
        put(left, moment, held, start, length);
      }
    }
    if (some) state.updateValue(name, left.toBytes());
    else state.removeKey(name);
  }

  /** Returns the earliest moment of the keys that the last {@link #take} left. */
  long earliestLeft() {
    return earliestLeft;
  }

  private static StateBytes reader(byte[] held) {
    if (held[0] != FORMAT) throw new IllegalStateException("STATE_INCOMPATIBLE: cannot read when keys are due: its format is " + held[0]);
    var reader = new StateBytes();
    reader.point(held, 1);
    return reader;
  }
}
