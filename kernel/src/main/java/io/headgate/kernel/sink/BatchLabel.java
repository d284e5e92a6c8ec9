package io.headgate.kernel.sink;

import org.apache.spark.SparkContext;
import org.slf4j.MDC;

/** The number of the batch at work, for the lines of the log: on the query's thread, and on those of its tasks. */
final class BatchLabel {
  /** Spark gives tasks the properties of their job that begin so. */
  private static final String NAME = "mdc.batch";
  /** Where Spark has the number on the query's thread. */
  private static final String OF_SPARK = "streaming.sql.batchId";

  private BatchLabel() {}

  /** Labels the batch whose tasks are about to start, on the query's thread. */
  static void put() {
    SparkContext context = SparkContext.getOrCreate();
    String batch = context.getLocalProperty(OF_SPARK);
    if (batch == null) return;
    context.setLocalProperty(NAME, batch);
    MDC.put(NAME, batch);
  }
}
