package io.headgate.kernel.rows;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import scala.Tuple2;

/**
 * The rows of a call that are not for the operator. It hands them on, those for outputs in the order of their sources: they come
 * out of a shuffle in any. One serves one task.
 */
public final class PassingRows {
  public static final Comparator<Tuple2<Integer, byte[]>> BY_POSITION =
      (a, b) -> Envelope.comparePositions(a._2(), b._2());

  private final List<Tuple2<Integer, byte[]>> outputs = new ArrayList<>();
  private boolean ordered = true;

  /** Takes a row; one that is not for an output goes on at once. */
  public void take(Tuple2<Integer, byte[]> row, List<Tuple2<Integer, byte[]>> out) {
    if (Envelope.kind(row._2()) != Envelope.OUTPUT) {
      out.add(row);
      return;
    }
    // Mostly they are in order as they come, and nothing has to be sorted.
    if (ordered && !outputs.isEmpty()) ordered = BY_POSITION.compare(outputs.get(outputs.size() - 1), row) <= 0;
    outputs.add(row);
  }

  /** Hands on what the call has for outputs. */
  public void leave(List<Tuple2<Integer, byte[]>> out) {
    if (outputs.isEmpty()) return;
    if (!ordered) outputs.sort(BY_POSITION);
    out.addAll(outputs);
    outputs.clear();
    ordered = true;
  }
}
