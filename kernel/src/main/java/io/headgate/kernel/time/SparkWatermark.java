package io.headgate.kernel.time;

import java.util.UUID;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;
import org.apache.spark.sql.execution.streaming.runtime.WatermarkTracker;

/**
 * Spark's watermark of a query, for the query's own thread.
 *
 * <p>Spark takes the greatest event time of a stream's rows, whichever partition they are of. So no row bears a time for it,
 * and what the clocks say is set here. Before a batch Spark asks all sources how far they go, and then logs this watermark
 * with the batch; when a batch commits, it logs this one for the next. The tracker is internal, seen in 4.3.0.
 */
final class SparkWatermark {
  private SparkWatermark() {}

  /** Raises the watermark to a time in epoch milliseconds; it never goes back. */
  static void raise(long time) {
    SparkSession spark = (SparkSession) org.apache.spark.sql.SparkSession.active();
    String id = spark.sparkContext().getLocalProperty(StreamExecution.QUERY_ID_KEY());
    StreamExecution query = spark.sharedState().activeStreamingQueries().get(UUID.fromString(id));
    WatermarkTracker tracker = ((MicroBatchExecution) query).watermarkTracker();
    if (time > tracker.currentWatermark()) tracker.setWatermark(time);
  }
}
