package io.headgate.kernel.pulsar;

import java.lang.ref.SoftReference;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.PriorityQueue;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * The rows of one task and epoch, held until it commits and then given in order; serves one thread.
 *
 * <p>Their bytes are in large blocks that serve epoch after epoch. Each row in an array of its own would be moved by the
 * collector, to where only a full collection finds it again: on Pulsar that took a tenth of a job's CPU. Rows that take more
 * memory than a task's share are sorted and moved to disk; reading them merges the files.
 */
final class HeldRows {
  /** Sets the memory of one task's rows, in bytes. Tests make it small. */
  static final String LIMIT = "headgate.pulsar.held";
  private static final int BLOCK = 256 << 10;
  /** What a row takes beside its bytes. */
  private static final int ROW = 72;
  /** Blocks that nobody uses. Memory that is needed elsewhere, or was not needed for long, is the collector's to take. */
  private static final Queue<SoftReference<byte[]>> FREE = new ConcurrentLinkedQueue<>();

  private final Comparator<OutputRow> order;
  private final long limit;
  private final List<OutputRow> rows = new ArrayList<>();
  private final List<SoftReference<byte[]>> taken = new ArrayList<>();
  private final List<SortedRun> spilled = new ArrayList<>();
  private final List<SortedRun.Reader> reading = new ArrayList<>();
  private byte[] block = {};
  private int used;
  private long held;
  private int count;

  /** @param tasks how many may run at a time: together they hold up to a quarter of the heap */
  HeldRows(Comparator<OutputRow> order, int tasks) {
    this.order = order;
    limit = Long.getLong(LIMIT, Runtime.getRuntime().maxMemory() / 4 / tasks);
  }

  void add(byte[] envelope) {
    OutputRow row = OutputRow.of(envelope);
    if (held + row.size() + ROW > limit && !rows.isEmpty()) spill();
    rows.add(row.size() > BLOCK ? row : copy(row));
    held += row.size() + ROW;
    count = Math.incrementExact(count);
  }

  private OutputRow copy(OutputRow row) {
    if (row.size() > block.length - used) {
      block = take();
      used = 0;
    }
    OutputRow out = row.copiedTo(block, used);
    used += row.size();
    return out;
  }

  private byte[] take() {
    for (SoftReference<byte[]> free; (free = FREE.poll()) != null;) {
      byte[] found = free.get();
      if (found == null) continue;
      taken.add(free);
      return found;
    }
    byte[] made = new byte[BLOCK];
    taken.add(new SoftReference<>(made));
    return made;
  }

  private void spill() {
    rows.sort(order);
    spilled.add(SortedRun.write(rows));
    release();
  }

  int size() {
    return count;
  }

  /** Ends the adding of rows. */
  void sort() {
    rows.sort(order);
  }

  /** Returns the rows in order, after {@link #sort}; ends what was read before. */
  Iterator<OutputRow> iterator() {
    closeReaders();
    return spilled.isEmpty() ? rows.iterator() : new Merged();
  }

  /** Drops the rows and leaves the blocks to others: rows that were given out hold no longer what they did. */
  void clear() {
    closeReaders();
    spilled.forEach(SortedRun::delete);
    spilled.clear();
    release();
    count = 0;
  }

  private void closeReaders() {
    reading.forEach(SortedRun.Reader::close);
    reading.clear();
  }

  private void release() {
    rows.clear();
    FREE.addAll(taken);
    taken.clear();
    block = new byte[0];
    used = 0;
    held = 0;
  }

  /** The rows on disk and those in memory, merged. */
  private final class Merged implements Iterator<OutputRow> {
    private final PriorityQueue<SortedRun.Reader> onDisk =
        new PriorityQueue<>(Comparator.comparing(SortedRun.Reader::head, order));
    private int inMemory;

    Merged() {
      for (SortedRun run : spilled) {
        SortedRun.Reader reader = run.read();
        reading.add(reader);
        onDisk.add(reader);
      }
    }

    @Override public boolean hasNext() {
      return !onDisk.isEmpty() || inMemory < rows.size();
    }

    @Override public OutputRow next() {
      if (!hasNext()) throw new NoSuchElementException();
      SortedRun.Reader first = onDisk.peek();
      if (first == null || inMemory < rows.size() && order.compare(rows.get(inMemory), first.head()) <= 0)
        return rows.get(inMemory++);
      onDisk.remove();
      OutputRow out = first.head();
      first.advance();
      if (first.head() != null) onDisk.add(first);
      return out;
    }
  }
}
