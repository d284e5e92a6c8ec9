package io.headgate.kernel.functions;

import io.headgate.kernel.plan.Placement;
import io.headgate.kernel.rows.Envelope;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.util.TaskCompletionListener;
import scala.Tuple2;

/**
 * Calls the functions between two stateful operators on the rows addressed to them, and passes all other rows on.
 *
 * <p>Rows keep their order: results take the place of the row that they are made of.
 */
public final class FunctionStage implements MapPartitionsFunction<Tuple2<Integer, byte[]>, Tuple2<Integer, byte[]>> {
  private final List<FunctionSpec> functions;
  private final WorkerPool.Key key;
  private final Placement placement;
  /** Whether a function asks something outside of the job. */
  private final boolean asks;

  /** @param functions in the order in which rows pass through them */
  public FunctionStage(List<FunctionSpec> functions, WorkerSettings settings, Placement placement) {
    this.functions = List.copyOf(functions);
    key = WorkerPool.Key.of(settings, this.functions);
    this.placement = placement;
    asks = this.functions.stream().anyMatch(function -> function.call() != null);
  }

  /** Returns the place of the function that a row is addressed to; -1 if it is for none of them. */
  int find(byte[] envelope) {
    if (Envelope.kind(envelope) != Envelope.EVENT) return -1;
    int address = Envelope.address(envelope);
    for (int i = 0; i < functions.size(); i++) if (functions.get(i).address() == address) return i;
    return -1;
  }

  List<FunctionSpec> functions() {
    return functions;
  }

  /** Returns how many rows one exchange has at most. */
  int mostRows(int otherwise) {
    return functions.stream().filter(function -> function.call() != null)
        .mapToInt(function -> function.call().mostRows()).max().orElse(otherwise);
  }

  boolean isPresent() {
    return placement.isPresentInTask();
  }

  @Override public Iterator<Tuple2<Integer, byte[]>> call(Iterator<Tuple2<Integer, byte[]>> rows) {
    TaskContext task = TaskContext.get();
    return call(rows, task, asks ? Epoch.ofTask(task) : null);
  }

  /** Does so without a task of Spark, for a test. */
  public Iterator<Tuple2<Integer, byte[]>> call(Iterator<Tuple2<Integer, byte[]>> rows, Epoch epoch) {
    return call(rows, null, epoch);
  }

  private Iterator<Tuple2<Integer, byte[]>> call(Iterator<Tuple2<Integer, byte[]>> rows, TaskContext task, Epoch epoch) {
    if (asks && epoch.partition() == 0) prune(epoch);
    var calls = new FunctionCalls(this, key, rows, epoch);
    TaskCompletionListener end = context -> calls.end(!context.isFailed() && !context.isInterrupted());
    if (task != null) task.addTaskCompletionListener(end);
    return calls;
  }

  private void prune(Epoch epoch) {
    try {
      for (FunctionSpec function : functions)
        if (function.call() != null) RecordedAnswers.prune(AnswerFolder.of(function.call().folder()), function.uid(), epoch.number());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
