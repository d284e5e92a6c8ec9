package io.headgate.kernel;

import java.util.Map;
import org.apache.hadoop.conf.Configuration;

/**
 * Where the values of Hadoop's configuration came from.
 *
 * <p>Spark sends the configuration to each stateful operator anew in each batch, and Hadoop compresses the origin of each of its
 * thousand values on its own: a sixteenth of the time of a small batch, for what no one asks an executor.
 */
public final class ConfigurationOrigins {
  private ConfigurationOrigins() {}

  /** Forgets them; the values stay. Hadoop has no method for it, and one that keeps them elsewhere is left as it is. */
  public static void forget(Configuration configuration) {
    try {
      // Its loading would have all values read anew, and their origins with them.
      Class.forName("org.apache.hadoop.hdfs.HdfsConfiguration");
      // Values are read when they are first asked for, and their origins noted then.
      configuration.size();
      var origins = Configuration.class.getDeclaredField("updatingResource");
      origins.setAccessible(true);
      if (origins.get(configuration) instanceof Map<?, ?> found) found.clear();
    } catch (ReflectiveOperationException | RuntimeException otherwise) {
      // Batches cost a little more.
    }
  }
}
