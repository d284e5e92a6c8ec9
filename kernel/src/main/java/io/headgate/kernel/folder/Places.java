package io.headgate.kernel.folder;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkEnv;
import org.apache.spark.deploy.SparkHadoopUtil;

/** Hadoop's file systems as data files are read from them, on the driver and in tasks. */
final class Places {
  private static final class Held {
    /** Once a process: making one takes milliseconds. */
    static final Configuration HADOOP = SparkHadoopUtil.get().newConfiguration(SparkEnv.get().conf());
  }

  private Places() {}

  static Configuration hadoop() {
    return Held.HADOOP;
  }

  /** Returns the file system of a path. Checksums that other programs leave beside local files do not count. */
  static FileSystem of(Path path) throws IOException {
    FileSystem fs = path.getFileSystem(Held.HADOOP);
    return fs instanceof LocalFileSystem local ? local.getRawFileSystem() : fs;
  }

  static String tag(FileStatus status) {
    return status instanceof EtagSource tagged ? tagged.getEtag() : null;
  }
}
