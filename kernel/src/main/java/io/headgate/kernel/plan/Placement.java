package io.headgate.kernel.plan;

import io.headgate.kernel.rows.Bucket;
import io.headgate.kernel.rows.Header;
import java.io.Serializable;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;

/**
 * The rules by which rows that no operator takes are given to tasks, and those of a task put in order.
 *
 * <p>A batch is finished by the rules under which it was begun: sinks know a task's rows of a batch by their place. Release 0.7
 * had others, which a batch that it left open still needs.
 *
 * @param since the first batch of the present rules
 */
public record Placement(long since) implements Serializable {
  /** Returns whether a batch goes by the present rules. */
  public boolean isPresent(long batch) {
    return batch >= since;
  }

  /** Returns whether the batch of the running task does; as Spark tells it to tasks in 4.3.0. */
  public boolean isPresentInTask() {
    if (since == 0) return true;
    String batch = TaskContext.get().getLocalProperty(MicroBatchExecution.BATCH_ID_KEY());
    if (batch == null) throw new IllegalStateException("a task does not know its batch");
    return isPresent(Long.parseLong(batch));
  }

  /**
   * Returns the bucket that {@link Route#send} is given for a row that comes from no operator.
   *
   * @param present what {@link #isPresentInTask} says
   */
  public static Integer spread(boolean present, Header header) {
    return present ? null : Bucket.ofOffset(header.offset);
  }
}
