package io.headgate.kernel.gate;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;

/**
 * The files that a source keeps in its own folder of the checkpoint, which every copy of the checkpoint has, too.
 *
 * <p>Spark's file manager (an internal interface, seen in 4.3.0) writes them, so that they lie wherever the checkpoint does.
 * Files whose names end with {@code .json} have a checksum beside them. Serves the query's thread.
 */
public final class KeptFiles {
  private final Path folder;
  private CheckpointFileManager manager;

  public KeptFiles(String folder) {
    this.folder = new Path(folder);
  }

  private CheckpointFileManager manager() {
    if (manager == null)
      manager = CheckpointFileManager.create(
          folder, ((org.apache.spark.sql.classic.SparkSession) SparkSession.active()).sessionState().newHadoopConf());
    return manager;
  }

  public boolean has(String name) {
    return manager().exists(new Path(folder, name));
  }

  /** Returns the names in the folder in their order; none where the folder does not exist. */
  public List<String> names() {
    if (!manager().exists(folder)) return List.of();
    var out = new ArrayList<String>();
    for (FileStatus each : manager().list(folder, path -> true)) out.add(each.getPath().getName());
    out.sort(null);
    return out;
  }

  public byte[] read(String name) {
    try (var in = manager().open(new Path(folder, name))) {
      return in.readAllBytes();
    } catch (IOException e) {
      throw new UncheckedIOException("cannot read " + new Path(folder, name), e);
    }
  }

  /** Creates a file, whole or not at all; fails if it exists. */
  public void create(String name, byte[] content) {
    Path file = new Path(folder, name);
    try {
      manager().mkdirs(folder);
      var out = manager().createAtomic(file, false);
      try {
        out.write(content);
        out.close();
      } catch (IOException | RuntimeException e) {
        out.cancel();
        throw e;
      }
    } catch (IOException e) {
      throw new UncheckedIOException("cannot write " + file, e);
    }
  }

  public void delete(String name) {
    manager().delete(new Path(folder, name));
  }

  @Override public String toString() {
    return folder.toString();
  }
}
