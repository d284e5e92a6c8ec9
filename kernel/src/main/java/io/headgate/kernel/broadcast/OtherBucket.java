package io.headgate.kernel.broadcast;

import java.util.function.Supplier;
import org.apache.spark.sql.execution.streaming.operators.stateful.transformwithstate.statefulprocessor.ImplicitGroupingKeyTracker;
import org.apache.spark.sql.streaming.StatefulProcessorHandle;
import scala.Option;

/**
 * Reads state of another bucket than the one that a call of an operator concerns.
 *
 * <p>Spark keeps the present grouping key beside the thread, and gives state of that key alone. A batch that only fires timers
 * calls no operator for its control bucket. As seen in Spark 4.3.0.
 */
final class OtherBucket {
  private OtherBucket() {}

  static <T> T within(StatefulProcessorHandle handle, Integer bucket, Supplier<T> read) {
    if (handle instanceof BucketHandle own) return own.within(bucket, read);
    Option<Object> present = ImplicitGroupingKeyTracker.getImplicitKeyOption();
    ImplicitGroupingKeyTracker.setImplicitKey(bucket);
    try {
      return read.get();
    } finally {
      if (present.isDefined()) ImplicitGroupingKeyTracker.setImplicitKey(present.get());
      else ImplicitGroupingKeyTracker.removeImplicitKey();
    }
  }
}
