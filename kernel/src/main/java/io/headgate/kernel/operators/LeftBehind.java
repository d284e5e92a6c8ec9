package io.headgate.kernel.operators;

import java.lang.ref.SoftReference;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.streaming.QueryInfo;
import org.apache.spark.util.TaskCompletionListener;

/**
 * What a task of an operator leaves in memory for the next batch's.
 *
 * <p>A task takes over what the batch just before it left behind, in the same run and of the same partition, and leaves it once
 * it has ended well, which is after its state was committed. Every other task begins with nothing: the first of a run, one whose
 * forerunner ran in another process, one that runs again. Between batches the garbage collector may have it all.
 */
public final class LeftBehind {
  private static final Map<Place, SoftReference<Left>> LEFT = new ConcurrentHashMap<>();

  private record Place(UUID query, int operator, int partition, Class<?> kind) {}

  private record Left(UUID run, long batch, int partitions, Object thing) {}

  private LeftBehind() {}

  /**
   * Returns what a task begins with, and sees to it that the next batch's gets it.
   *
   * @param kind its class, of which an operator leaves one
   * @param fresh makes an empty one
   */
  public static <T> T take(QueryInfo query, int operator, Class<T> kind, TaskContext task, Supplier<T> fresh) {
    var place = new Place(query.getQueryId(), operator, task.partitionId(), kind);
    UUID run = query.getRunId();
    long batch = query.getBatchId();
    int partitions = task.numPartitions();
    SoftReference<Left> reference = LEFT.remove(place);
    Left left = reference == null ? null : reference.get();
    boolean follows = left != null && left.run.equals(run) && left.batch == batch - 1 && left.partitions == partitions;
    T thing = follows ? kind.cast(left.thing) : fresh.get();
    LEFT.values().removeIf(each -> each.get() == null);
    TaskCompletionListener leave = done -> {
      if (done.isFailed() || done.isInterrupted()) return;
      LEFT.put(place, new SoftReference<>(new Left(run, batch, partitions, thing)));
    };
    task.addTaskCompletionListener(leave);
    return thing;
  }
}
