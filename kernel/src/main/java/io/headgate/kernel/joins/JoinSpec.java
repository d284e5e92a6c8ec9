package io.headgate.kernel.joins;

import io.headgate.kernel.plan.Route;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.time.Pace;
import java.io.Serializable;
import java.util.List;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * An interval join of a flow, as tasks run it.
 *
 * @param name how messages name the operator
 * @param address where left rows go; {@code rightAddress} likewise right ones
 * @param shared whether one record may be on both sides
 * @param inputs what rows of each side look like as they arrive, left first
 * @param before how many ms before a left row a right row may be to match; {@code after} likewise behind it
 * @param key the columns of the key, as the left side names them
 * @param matched takes left rows with the right one attached; {@code leftOnly} and {@code rightOnly} rows without a match;
 *     {@code late} rows of {@link #lateSchema}
 */
public record JoinSpec(
    String name, int address, int rightAddress, boolean shared, List<Layout> inputs, JoinSchemas schemas, long before, long after,
    List<StructField> key, Layout together, Route matched, Route leftOnly, Route rightOnly, Route late)
    implements Serializable {
  /** Returns the columns of a late row: its side, and the row in the column of that side. */
  public static StructType lateSchema(StructType left, StructType right) {
    return new StructType()
        .add("side", DataTypes.StringType, false).add("left", left, true).add("right", right, true);
  }

  /** Returns the columns of a side's rows. */
  StructType columns(int side) {
    return inputs.get(side).schema();
  }

  /** Returns the least time of the other side's rows that match a row of a side. */
  long from(int side, long time) {
    return subtract(time, side == JoinRow.LEFT ? before : after);
  }

  /** Returns the greatest time of the other side's rows that match a row of a side. */
  long until(int side, long time) {
    return add(time, side == JoinRow.LEFT ? after : before);
  }

  /** Returns the watermark at which no row can arrive any more that matches a row of a side. */
  long expiry(int side, long time) {
    return Math.min(add(until(side, time), 1), Pace.END);
  }

  private static long add(long time, long span) {
    return time > Long.MAX_VALUE - span ? Long.MAX_VALUE : time + span;
  }

  private static long subtract(long time, long span) {
    return time < Long.MIN_VALUE + span ? Long.MIN_VALUE : time - span;
  }
}
