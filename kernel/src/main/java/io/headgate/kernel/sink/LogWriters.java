package io.headgate.kernel.sink;

import java.io.Serializable;
import java.util.List;

/**
 * Writes a flow's rows to one cluster of a log: made on the driver, sent to every task.
 *
 * <p>An implementation has a public constructor that takes a {@link LogSpec}. It is reached by its name, so that a flow that
 * writes elsewhere needs none of its classes.
 */
public interface LogWriters extends Serializable {
  /**
   * Makes the cluster ready for this query; called on the driver, once, before the first epoch.
   *
   * @param earlier the query's other writers that are ready already; some may reach the same cluster by other ways
   */
  void prepare(List<LogWriters> earlier);

  /** Opens the writer of a task and epoch; called at the first row, so that a task without rows costs nothing. */
  LogWriter open(int task, int tasks, long epoch);

  /** Takes note that a task committed an epoch without a row for this cluster. */
  void passed(int task, long epoch);

  /** Lets go of what this process keeps open from epoch to epoch. */
  void close();
}
