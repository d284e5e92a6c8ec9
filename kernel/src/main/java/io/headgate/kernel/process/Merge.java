package io.headgate.kernel.process;

import io.headgate.kernel.rows.Envelope;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.PriorityQueue;

/**
 * The order in which a process function takes the events of two streams.
 *
 * <p>Rows come by key. Those of one key keep the order of each partition of a source; partitions are merged by the times of their
 * next rows, and at the same time by position. So the order follows from the rows of a call alone.
 */
final class Merge {
  // A record may be in both streams, with the same position: then the left one, whose address is less, is first.
  private static final Comparator<byte[]> BY_POSITION = ((Comparator<byte[]>) Envelope::compareRecords)
      .thenComparing(Envelope::address).thenComparing(Envelope::comparePositions);
  private static final Comparator<byte[]> BY_KEY = ((Comparator<byte[]>) Envelope::compareLast).thenComparing(BY_POSITION);
  private static final Comparator<ArrayDeque<byte[]>> BY_NEXT_ROW =
      Comparator.comparing(ArrayDeque::peek, Comparator.comparingLong(Merge::time).thenComparing(BY_POSITION));

  private Merge() {}

  /** Puts rows of any keys in order. */
  static void sort(List<byte[]> rows) {
    rows.sort(BY_KEY);
    for (int from = 0, to; from < rows.size(); from = to) {
      to = Envelope.endOfRun(rows, from);
      if (to - from > 1) merge(rows.subList(from, to));
    }
  }

  /** Merges the partitions of one key's rows, which are in the order of their positions. */
  private static void merge(List<byte[]> rows) {
    var partitions = new HashMap<Long, ArrayDeque<byte[]>>();
    for (byte[] row : rows) partitions.computeIfAbsent(sequence(row), s -> new ArrayDeque<>()).add(row);
    if (partitions.size() == 1) return;
    var waiting = new PriorityQueue<ArrayDeque<byte[]>>(BY_NEXT_ROW);
    waiting.addAll(partitions.values());
    for (int i = 0; i < rows.size(); i++) {
      ArrayDeque<byte[]> next = waiting.poll();
      rows.set(i, next.poll());
      if (!next.isEmpty()) waiting.add(next);
    }
  }

  /** Returns the ordered sequence that a row is in: a partition, or a topic that has none. */
  private static long sequence(byte[] row) {
    int source = Envelope.source(row);
    int within = source == Envelope.NO_SOURCE ? Envelope.partition(row) : Envelope.lane(row);
    return (long) source << Integer.SIZE | within & 0xffffffffL;
  }

  /** Returns a row's event time; in a stream without one, the time of its record. */
  private static long time(byte[] row) {
    long time = Envelope.eventTime(row);
    return time == Envelope.NO_EVENT_TIME ? Envelope.timestamp(row) : time;
  }
}
