package io.headgate.kernel.joins;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import scala.Tuple2;

/**
 * The rows that a call makes, in their order. Some are made only when they are asked for: the pairs of a key with many rows on
 * both sides would not fit into memory.
 */
final class JoinOutput implements Iterator<Tuple2<Integer, byte[]>> {
  /** Makes rows piece by piece. */
  interface Part {
    /** Returns the next rows; none at the end. */
    List<Tuple2<Integer, byte[]>> next();
  }

  private final ArrayDeque<Part> parts = new ArrayDeque<>();
  /** The rows behind all parts. */
  private List<Tuple2<Integer, byte[]>> last = new ArrayList<>();
  private List<Tuple2<Integer, byte[]>> present = List.of();
  private int at;

  void add(Tuple2<Integer, byte[]> row) {
    last.add(row);
  }

  void addLater(Part part) {
    if (!last.isEmpty()) parts.add(once(last));
    parts.add(part);
    last = new ArrayList<>();
  }

  private static Part once(List<Tuple2<Integer, byte[]>> rows) {
    Iterator<List<Tuple2<Integer, byte[]>>> one = List.of(rows).iterator();
    return () -> one.hasNext() ? one.next() : List.of();
  }

  @Override public boolean hasNext() {
    while (at >= present.size()) {
      at = 0;
      if (!parts.isEmpty()) {
        present = parts.peek().next();
        if (present.isEmpty()) parts.remove();
      } else {
        present = last;
        last = List.of();
        return !present.isEmpty();
      }
    }
    return true;
  }

  @Override public Tuple2<Integer, byte[]> next() {
    if (!hasNext()) throw new NoSuchElementException();
    return present.get(at++);
  }
}
