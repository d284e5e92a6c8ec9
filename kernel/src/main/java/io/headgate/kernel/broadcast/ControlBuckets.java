package io.headgate.kernel.broadcast;

import io.headgate.kernel.rows.Bucket;
import java.io.Serializable;
import org.apache.spark.TaskContext;

/**
 * The buckets that hold the rows of a broadcast table: one for each task of an operator, whose copy it is.
 *
 * <p>They are below 0: no key is in them, and Spark sorts the rows of a task by bucket, so that a task has the changes of a batch
 * before any other row. Each is the first of -1, -2, … that Spark gives to its task. So -1 is one of them for any number of
 * tasks, and stands for all where one copy is wanted.
 */
public final class ControlBuckets implements Serializable {
  /** The bucket whose copy stands for all. */
  public static final int FIRST = -1;

  private final Integer[] byTask;

  private ControlBuckets(Integer[] byTask) {
    this.byTask = byTask;
  }

  /** Returns those of an operator with so many tasks. */
  public static ControlBuckets of(int tasks) {
    var byTask = new Integer[tasks];
    int left = tasks;
    for (int bucket = FIRST; left > 0; bucket--) {
      int task = Bucket.partition(bucket, tasks);
      if (byTask[task] != null) continue;
      byTask[task] = bucket;
      left--;
    }
    return new ControlBuckets(byTask);
  }

  /** Returns whether a bucket is one of these, and has no keys. */
  public static boolean isControl(Integer bucket) {
    return bucket < 0;
  }

  public Integer[] all() {
    return byTask.clone();
  }

  /** Returns the bucket of the present task; without one, which is in tests, the first. */
  Integer ofTask() {
    TaskContext task = TaskContext.get();
    if (task == null) return FIRST;
    if (task.numPartitions() != byTask.length)
      throw new IllegalStateException(
          "an operator was planned for " + byTask.length + " tasks, and has " + task.numPartitions());
    return byTask[task.partitionId()];
  }
}
