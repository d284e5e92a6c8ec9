package io.headgate.kernel.broadcast;

import io.headgate.kernel.operators.LeftBehind;
import io.headgate.kernel.operators.TableChanges;
import io.headgate.kernel.rows.BytesEncoder;
import io.headgate.kernel.rows.Envelope;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.streaming.MapState;
import org.apache.spark.sql.streaming.StatefulProcessorHandle;
import org.apache.spark.sql.streaming.TTLConfig;

/**
 * The task's copy of a broadcast table: in state under the task's control bucket, and in memory.
 *
 * <p>State has the same form as that of a table that enriches. The rows in memory stay for the next batch of the same run.
 */
public final class BroadcastTable {
  /** The name of the variable of state. */
  public static final String NAME = "rules";

  private static final Comparator<byte[]> BY_KEY =
      ((Comparator<byte[]>) Envelope::compareLast).thenComparing(Envelope::comparePositions);

  private final BroadcastSpec spec;
  private final StatefulProcessorHandle handle;
  private final MapState<byte[], byte[]> state;
  private final TableChanges changes;
  private final BroadcastRows rows;
  private Integer bucket;

  /** @param address the operator's */
  public BroadcastTable(StatefulProcessorHandle handle, BroadcastSpec spec, int address) {
    this.spec = spec;
    this.handle = handle;
    state = handle.getMapState(NAME, BytesEncoder.INSTANCE, BytesEncoder.INSTANCE, TTLConfig.NONE());
    changes = new TableChanges(spec.history());
    TaskContext task = TaskContext.get();
    rows = task == null
        ? new BroadcastRows() : LeftBehind.take(handle.getQueryInfo(), address, BroadcastRows.class, task, BroadcastRows::new);
  }

  /** Takes over an entry as an earlier run kept it; within the call for the control bucket. */
  public void put(byte[] key, byte[] held) {
    state.updateValue(key, held);
    rows.forget();
  }

  /**
   * Applies changes; within the call for the control bucket.
   *
   * @param of the bucket of the call
   */
  public void apply(Integer of, List<byte[]> envelopes) {
    if (!of.equals(bucket())) throw new IllegalStateException("bucket " + of + " is not that of the task, " + bucket());
    envelopes.sort(BY_KEY);
    for (int from = 0, to; from < envelopes.size(); from = to) {
      to = Envelope.endOfRun(envelopes, from);
      byte[] key = Envelope.last(envelopes.get(from));
      byte[] before = state.getValue(key);
      byte[] held = changes.apply(new ArrayList<>(envelopes.subList(from, to)), before);
      if (held == before) continue;
      state.updateValue(key, held);
      rows.put(key, held, spec.history());
    }
  }

  /** Returns the rows as of now, which are those of the whole batch once the control bucket was called. */
  public BroadcastRows rows() {
    if (!rows.isRead())
      OtherBucket.within(handle, bucket(), () -> {
        rows.read(state.iterator(), spec.history());
        return null;
      });
    return rows;
  }

  private Integer bucket() {
    // Not before it is needed: Spark makes operators on the driver, too.
    if (bucket == null) bucket = spec.buckets().ofTask();
    return bucket;
  }
}
