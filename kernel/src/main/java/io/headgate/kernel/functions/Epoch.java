package io.headgate.kernel.functions;

import org.apache.spark.TaskContext;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;

/**
 * One task's part of a batch.
 *
 * @param number the batch
 * @param partition the task's place among those of its stage, of which there are {@code partitions}
 */
public record Epoch(long number, int partition, int partitions) {
  /** Returns that of the running task, as Spark tells it to tasks in 4.3.0. */
  static Epoch ofTask(TaskContext task) {
    String batch = task.getLocalProperty(MicroBatchExecution.BATCH_ID_KEY());
    if (batch == null) throw new IllegalStateException("a task does not know its batch");
    return new Epoch(Long.parseLong(batch), task.partitionId(), task.numPartitions());
  }
}
