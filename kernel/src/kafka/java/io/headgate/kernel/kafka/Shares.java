package io.headgate.kernel.kafka;

import java.util.List;

/**
 * How many bytes each partition gives to a batch: as many as it has, or a share in proportion to the offsets that wait.
 *
 * @param ends by partition, the offset behind the last one of the batch
 * @param bytes how many the batch has at most
 * @param isShort by partition, whether it would give more if more of it had been measured
 */
public record Shares(long[] ends, long bytes, boolean[] isShort) {
  /** A batch that is so full needs no more. */
  private static final double FULL = 15 / 16.0;

  /**
   * Returns where a batch ends that has no more than so many bytes, or a single record that is larger.
   *
   * @param curves by partition; the first offset of each is covered
   * @param from by partition, the first offset
   * @param to by partition, the offset behind the last one that may be read
   * @param turn the partition that comes first where not every one can give a record
   */
  public static Shares of(List<SizeCurve> curves, long[] from, long[] to, long limit, int turn) {
    long[] ends = from.clone();
    long bytes = 0;
    for (int n = 0; n < ends.length; n++) {
      int i = (turn + n) % ends.length;
      long step = curves.get(i).step(from[i], to[i]);
      long size = curves.get(i).bytes(from[i], step);
      if (bytes > 0 && bytes + size > limit) continue;
      ends[i] = step;
      bytes += size;
    }
    boolean[] isShort = shortOf(curves, ends, to);
    while (bytes < limit * FULL && !any(isShort)) {
      long before = bytes;
      bytes = share(curves, ends, to, limit, bytes);
      isShort = shortOf(curves, ends, to);
      if (bytes == before) break;
    }
    return new Shares(ends, bytes, bytes < limit * FULL ? isShort : new boolean[ends.length]);
  }

  private static long share(List<SizeCurve> curves, long[] ends, long[] to, long limit, long bytes) {
    double waiting = 0;
    for (int i = 0; i < ends.length; i++) waiting += to[i] - ends[i];
    long sum = bytes;
    for (int i = 0; i < ends.length; i++) {
      if (ends[i] >= to[i]) continue;
      SizeCurve curve = curves.get(i);
      long end = curve.end(ends[i], to[i], (long) ((limit - bytes) * ((to[i] - ends[i]) / waiting)));
      sum += curve.bytes(ends[i], end);
      ends[i] = end;
    }
    return sum;
  }

  private static boolean[] shortOf(List<SizeCurve> curves, long[] ends, long[] to) {
    var out = new boolean[ends.length];
    for (int i = 0; i < out.length; i++) out[i] = ends[i] < to[i] && ends[i] >= curves.get(i).reached();
    return out;
  }

  private static boolean any(boolean[] values) {
    for (boolean value : values) if (value) return true;
    return false;
  }
}
