package io.headgate.kernel.functions;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import scala.Tuple2;

/** What becomes of each row of a round, in the order of these rows. Most become one row, which needs no list. */
final class Slots {
  /** Nothing, a row, or a list of several. */
  private Object[] slots = new Object[4096];
  private int size;

  /** Adds an empty slot and returns its place. */
  int add() {
    if (size == slots.length) slots = Arrays.copyOf(slots, 2 * size);
    return size++;
  }

  int size() {
    return size;
  }

  /** Puts a row behind those that are in a slot. */
  void put(int slot, Tuple2<Integer, byte[]> row) {
    Object there = slots[slot];
    if (there == null) slots[slot] = row;
    else if (there instanceof Tuple2) slots[slot] = new ArrayList<>(List.of(there, row));
    else rows(there).add(row);
  }

  /** Moves all rows to the end of a queue, and starts over. */
  void moveTo(ArrayDeque<Tuple2<Integer, byte[]>> queue) {
    for (int i = 0; i < size; i++) {
      Object there = slots[i];
      slots[i] = null;
      if (there instanceof Tuple2) queue.add(row(there));
      else if (there != null) queue.addAll(rows(there));
    }
    size = 0;
  }

  @SuppressWarnings("unchecked")
  private static Tuple2<Integer, byte[]> row(Object slot) {
    return (Tuple2<Integer, byte[]>) slot;
  }

  @SuppressWarnings("unchecked")
  private static Collection<Tuple2<Integer, byte[]>> rows(Object slot) {
    return (Collection<Tuple2<Integer, byte[]>>) slot;
  }
}
