package io.headgate.kernel.time;

import org.apache.spark.sql.streaming.StatefulProcessorHandle;
import scala.collection.Iterator;

/**
 * The one timer of a bucket: for the earliest moment at which one of its keys is due.
 *
 * <p>Moments must be above the watermark: Spark may skip those at or below it. Of the bucket that a call concerns.
 */
public final class BucketTimer {
  /** The moment of a key that is never due. */
  public static final long NEVER = Long.MAX_VALUE;

  private final StatefulProcessorHandle handle;

  public BucketTimer(StatefulProcessorHandle handle) {
    this.handle = handle;
  }

  /** Has the bucket woken at a moment, if it is not woken before. */
  public void wakeBy(long moment) {
    long registered = registered();
    if (moment >= registered) return;
    if (registered != NEVER) handle.deleteTimer(registered);
    handle.registerTimer(moment);
  }

  /** Has the bucket woken again, out of the call for its timer: Spark deletes the one that has expired once that returns. */
  public void wakeAgain(long moment) {
    if (moment != NEVER) handle.registerTimer(moment);
  }

  private long registered() {
    Iterator<Object> timers = handle.listTimers();
    long found = NEVER;
    while (timers.hasNext()) found = Math.min(found, (Long) timers.next());
    return found;
  }
}
