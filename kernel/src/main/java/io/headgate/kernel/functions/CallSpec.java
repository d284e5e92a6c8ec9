package io.headgate.kernel.functions;

import io.headgate.kernel.plan.Route;
import io.headgate.kernel.rows.Layout;
import java.io.Serializable;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * How an async function is called, and what becomes of its answers.
 *
 * @param capacity how many calls of a task are under way at once
 * @param timeoutMillis how long one attempt may take
 * @param retries how often a call that failed is made again
 * @param ordered whether rows leave in the order in which they came; otherwise in that in which calls ended
 * @param failed the rows whose calls failed: those that arrive, with {@link #FAILURE} as one more segment
 * @param route where these go
 * @param folder where answers are recorded; shared by all tasks of the job
 */
public record CallSpec(
    int capacity, long timeoutMillis, int retries, boolean ordered, Layout failed, Route route, String folder)
    implements Serializable {
  /** The column that says why a call failed. */
  public static final String COLUMN = "failure";

  public static final StructType FAILURE = new StructType()
      .add("error", DataTypes.StringType, false)
      .add("attempts", DataTypes.IntegerType, false);

  /** One exchange with the worker has at most so many rows for each call that may be under way. */
  private static final int ROUNDS = 100;
  private static final int MOST_ROWS = 65_536;

  /** Returns how many rows are called before their answers are recorded. */
  int mostRows() {
    return (int) Math.min((long) capacity * ROUNDS, MOST_ROWS);
  }
}
