package io.headgate.kernel.gate;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;

/**
 * Where a table ended when its job first started, kept in the source's own folder of the checkpoint.
 *
 * <p>A job that dies while its tables load goes on loading to the same place. Spark's file manager (an internal interface,
 * seen in 4.3.0) writes it, so that it lies wherever the checkpoint does.
 */
final class LoadTarget {
  private final Path file;
  private String known;

  LoadTarget(String checkpoint) {
    file = new Path(checkpoint, "load-target-v1.json");
  }

  /** Returns the target; the first call ever makes it the position given. */
  String readOrWrite(String newest) {
    if (known != null) return known;
    SparkSession spark = SparkSession.active();
    var files = CheckpointFileManager.create(
        file.getParent(), ((org.apache.spark.sql.classic.SparkSession) spark).sessionState().newHadoopConf());
    try {
      if (!files.exists(file)) {
        files.mkdirs(file.getParent());
        var out = files.createAtomic(file, false);
        out.write(newest.getBytes(StandardCharsets.UTF_8));
        out.close();
      }
      try (var in = files.open(file)) {
        known = new String(in.readAllBytes(), StandardCharsets.UTF_8);
      }
    } catch (IOException e) {
      throw new UncheckedIOException("cannot keep where table loading ends in " + file, e);
    }
    return known;
  }
}
