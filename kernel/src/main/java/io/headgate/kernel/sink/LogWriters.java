package io.headgate.kernel.sink;

import io.headgate.kernel.rows.Envelope;
import java.io.Serializable;
import java.util.Arrays;
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

  /** Takes note, on the driver, of what the tasks of an epoch reported; null for a task without rows for this cluster. */
  default void written(List<Serializable> reports) {}

  /** Takes note, on the driver between two batches, that Spark has committed every epoch that was written. */
  default void settled() {}

  /** Makes all committed rows visible before the query ends by itself; likewise between two batches. */
  default void finish() {}

  /** Returns a row as it is shown on a terminal. */
  default byte[] shown(int output, byte[] envelope) {
    int start = Envelope.start(envelope, 0);
    return Arrays.copyOfRange(envelope, start, start + Envelope.length(envelope, 0));
  }

  /** Lets go of what this process keeps open from epoch to epoch. */
  void close();
}
