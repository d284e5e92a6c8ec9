package io.headgate.kernel.operators;

import java.security.SecureRandom;
import java.util.Arrays;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.sql.streaming.QueryInfo;
import org.apache.spark.unsafe.Platform;

/**
 * Rows of a table as state has them, by key, so that a key that comes again in the next batch needs no read of state.
 *
 * <p>A task begins with what the batch just before it left behind ({@link LeftBehind}), or with nothing, and then reads state.
 *
 * <p>One that is full takes no more keys: of a table that does not fit, rows that come and go would only be work for the garbage
 * collector. It starts over now and then, since what is asked for changes.
 *
 * <p>Nobody changes the bytes of a row. For one thread at a time.
 */
public final class RowCache {
  private static final int FEWEST = 1 << 10;
  /** What an entry takes beside its bytes: two arrays' heads, its places here. */
  private static final int OVERHEAD = 64;
  /** Of the heap, for all partitions of an operator. */
  private static final int SHARE = 32;
  /** How many batches one that is full stays as it is. */
  private static final int LASTS = 256;
  /** Nobody can choose keys that meet in one place. */
  private static final long SEED = new SecureRandom().nextLong();
  private static final long ALONE = 1 << 20;

  private final long most;
  private int[] hashes;
  /** A key and its row, side by side. */
  private byte[][] entries;
  private int count;
  private long bytes;
  /** Whether something did not fit. */
  private boolean full;
  /** Since it is full. */
  private int batches;

  /** @param most how many bytes it may hold */
  public RowCache(long most) {
    this.most = most;
    clear();
  }

  /** Returns one for an operator that no task runs, which is in tests. */
  public static RowCache alone() {
    return new RowCache(ALONE);
  }

  /** Returns the rows that a task of an operator begins with, and sees to it that the next batch's gets them. */
  public static RowCache of(QueryInfo query, int operator, TaskContext task) {
    int partitions = task.numPartitions();
    RowCache rows = LeftBehind.take(
        query, operator, RowCache.class, task, () -> new RowCache(Runtime.getRuntime().maxMemory() / SHARE / partitions));
    rows.begin();
    return rows;
  }

  /** Begins another batch. */
  public void begin() {
    if (full && ++batches >= LASTS) clear();
  }

  /** Returns the row of a key; null where it is not known here, which says nothing of state. */
  public byte[] get(byte[] key) {
    return entries[2 * find(key, hash(key)) + 1];
  }

  /** Keeps what state holds of a key from now on, or nothing of it. */
  public void put(byte[] key, byte[] row) {
    int hash = hash(key);
    int at = find(key, hash);
    byte[] before = entries[2 * at + 1];
    if (before == null) {
      add(at, hash, key, row);
    } else {
      bytes += row.length - before.length;
      entries[2 * at + 1] = row;
    }
    // Rows that are known may outgrow it; they cannot stay as they were.
    if (bytes > most) clear();
  }

  private void add(int at, int hash, byte[] key, byte[] row) {
    int size = OVERHEAD + key.length + row.length;
    if (bytes + size > most) {
      full = true;
      return;
    }
    hashes[at] = hash;
    entries[2 * at] = key;
    entries[2 * at + 1] = row;
    bytes += size;
    if (++count * 2 > hashes.length) grow();
  }

  private void clear() {
    hashes = new int[FEWEST];
    entries = new byte[2 * FEWEST][];
    count = 0;
    bytes = 0;
    full = false;
    batches = 0;
  }

  /** Returns where a key is, or the empty place where it would be. */
  private int find(byte[] key, int hash) {
    int last = hashes.length - 1;
    int at = hash & last;
    while (hashes[at] != 0 && !(hashes[at] == hash && Arrays.equals(entries[2 * at], key))) at = (at + 1) & last;
    return at;
  }

  private void grow() {
    int[] oldHashes = hashes;
    byte[][] old = entries;
    hashes = new int[2 * oldHashes.length];
    entries = new byte[2 * old.length][];
    int last = hashes.length - 1;
    for (int i = 0; i < oldHashes.length; i++) {
      if (oldHashes[i] == 0) continue;
      int at = oldHashes[i] & last;
      while (hashes[at] != 0) at = (at + 1) & last;
      hashes[at] = oldHashes[i];
      entries[2 * at] = old[2 * i];
      entries[2 * at + 1] = old[2 * i + 1];
    }
  }

  /** Returns a number of a key that is never 0, which stands for an empty place. */
  private static int hash(byte[] key) {
    int hash = (int) XXH64.hashUnsafeBytes(key, Platform.BYTE_ARRAY_OFFSET, key.length, SEED);
    return hash == 0 ? 1 : hash;
  }
}
