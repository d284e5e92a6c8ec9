package io.headgate.kernel.pulsar;

import java.lang.ref.SoftReference;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * The rows of one task and epoch, held until it commits; serves one thread.
 *
 * <p>Their bytes are in large blocks that serve epoch after epoch. Each row in an array of its own would be moved by the
 * collector, to where only a full collection finds it again: on Pulsar that took a tenth of a job's CPU.
 */
final class HeldRows {
  private static final int BLOCK = 256 << 10;
  /** Blocks that nobody uses. Memory that is needed elsewhere, or was not needed for long, is the collector's to take. */
  private static final Queue<SoftReference<byte[]>> FREE = new ConcurrentLinkedQueue<>();

  private final List<OutputRow> rows = new ArrayList<>();
  private final List<SoftReference<byte[]>> taken = new ArrayList<>();
  private byte[] block = {};
  private int used;

  void add(byte[] envelope) {
    OutputRow row = OutputRow.of(envelope);
    rows.add(row.size() > BLOCK ? row : copy(row));
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

  /** Puts the rows in order; returns them. */
  List<OutputRow> sort(Comparator<OutputRow> order) {
    rows.sort(order);
    return rows;
  }

  /** Leaves the blocks to others: rows that were given out hold no longer what they did. */
  void clear() {
    rows.clear();
    FREE.addAll(taken);
    taken.clear();
    block = new byte[0];
    used = 0;
  }
}
