package io.headgate.kernel.functions;

import io.headgate.kernel.checkpoint.StoreFiles;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkEnv;
import org.apache.spark.deploy.SparkHadoopUtil;

/** Answers on an object store, which driver and executors reach alike. */
final class StoredAnswerFolder implements AnswerFolder {
  private final Path root;
  private final StoreFiles files;

  StoredAnswerFolder(String root) throws IOException {
    this.root = new Path(root);
    files = StoreFiles.find(this.root, Settings.HADOOP);
    if (files == null) throw new IOException("cannot record answers in " + root + ": the store cannot create a file if it is absent");
  }

  /** Spark's settings of Hadoop's file systems, in the driver and in executors. */
  private static final class Settings {
    static final Configuration HADOOP = SparkHadoopUtil.get().newConfiguration(SparkEnv.get().conf());
  }

  @Override public List<String> list(String folder) {
    return Arrays.stream(files.list(new Path(root, folder))).map(file -> file.getPath().getName()).sorted().toList();
  }

  @Override public byte[] read(String file) throws IOException {
    return files.read(new Path(root, file));
  }

  @Override public boolean create(String file, byte[] content) throws IOException {
    return files.create(new Path(root, file), content);
  }

  @Override public void remove(String folder) {
    files.delete(new Path(root, folder));
  }

  @Override public String nameOf(String file) {
    return new Path(root, file).toString();
  }
}
