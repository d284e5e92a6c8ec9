package io.headgate.kernel.functions;

import java.nio.file.Path;
import org.apache.spark.SparkFiles;

/** Files that the driver sent to its executors; each has them in its own working folder. */
final class SentFiles {
  private static final String PREFIX = "sent:";

  private SentFiles() {}

  /** Returns a path in this process: what follows {@code sent:} is in the working folder, other paths are as they are. */
  static String path(String given) {
    if (!given.startsWith(PREFIX)) return given;
    return Path.of(SparkFiles.get(given.substring(PREFIX.length()))).toAbsolutePath().normalize().toString();
  }
}
