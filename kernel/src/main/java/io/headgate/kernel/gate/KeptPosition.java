package io.headgate.kernel.gate;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.function.Supplier;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;

/**
 * A position that is decided once in a run, kept in the source's own folder of the checkpoint: where a table ended when its
 * job first started, so that a job that dies while its tables load goes on loading to the same place; or where a source was
 * first read, so that {@code latest} stays what it was.
 *
 * <p>Spark's file manager (an internal interface, seen in 4.3.0) writes it, so that it lies wherever the checkpoint does.
 */
final class KeptPosition {
  private final Path file;
  private String known;

  private KeptPosition(String checkpoint, String name) {
    file = new Path(checkpoint, name);
  }

  static KeptPosition loadTarget(String checkpoint) {
    return new KeptPosition(checkpoint, "load-target-v1.json");
  }

  static KeptPosition start(String checkpoint) {
    return new KeptPosition(checkpoint, "start-v1.json");
  }

  /** Returns the position; the first call ever in a run makes it the one given. */
  String readOrWrite(Supplier<String> first) {
    if (known != null) return known;
    SparkSession spark = SparkSession.active();
    var files = CheckpointFileManager.create(
        file.getParent(), ((org.apache.spark.sql.classic.SparkSession) spark).sessionState().newHadoopConf());
    try {
      if (!files.exists(file)) {
        // Before the file is begun: whatever keeps the position from being found leaves nothing behind.
        byte[] content = first.get().getBytes(StandardCharsets.UTF_8);
        files.mkdirs(file.getParent());
        var out = files.createAtomic(file, false);
        out.write(content);
        out.close();
      }
      try (var in = files.open(file)) {
        known = new String(in.readAllBytes(), StandardCharsets.UTF_8);
      }
    } catch (IOException e) {
      throw new UncheckedIOException("cannot keep a position in " + file, e);
    }
    return known;
  }
}
