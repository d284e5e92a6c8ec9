package io.headgate.kernel.secrets;

import java.io.IOException;
import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.regex.Matcher;
import org.apache.spark.SparkEnv;

/**
 * What references stand for on the driver, for executors that have neither its variables nor its files. It is never shown.
 *
 * <p>What the driver does not have is looked up by the executor.
 */
public final class Carried implements Serializable {
  /** Of a process that has everything itself. */
  public static final Carried NOTHING = new Carried();

  private final HashMap<String, String> variables = new HashMap<>();
  private final HashMap<String, String> files = new HashMap<>();

  private Carried() {}

  /** Returns whether tasks run in other processes than this one, which is the driver's. */
  public static boolean isNeeded() {
    SparkEnv spark = SparkEnv.get();
    return spark != null && !spark.conf().get("spark.master", "local").matches("local(\\[.*])?");
  }

  /**
   * Returns what the references in some values stand for here.
   *
   * @param config a properties file whose values are among them, which is carried, too; may be null
   */
  public static Carried of(Collection<String> values, String config) {
    var out = new Carried();
    values.forEach(out::take);
    if (config != null && out.takeFile(config)) {
      var properties = new Properties();
      try {
        properties.load(new java.io.StringReader(out.files.get(config)));
      } catch (IOException | IllegalArgumentException e) {
        // The reader of the value reports what is wrong with it.
      }
      properties.stringPropertyNames().forEach(name -> out.take(properties.getProperty(name)));
    }
    return out;
  }

  private void take(String value) {
    Matcher m = References.REFERENCE.matcher(value);
    while (m.find()) {
      if (m.group(1).equals("file")) takeFile(m.group(2));
      else if (System.getenv(m.group(2)) != null) variables.put(m.group(2), System.getenv(m.group(2)));
    }
  }

  private boolean takeFile(String file) {
    try {
      files.put(file, Files.readString(Path.of(file)));
      return true;
    } catch (IOException | RuntimeException e) {
      return false;
    }
  }

  /** Returns the variables of this process, and those that were carried, which win. */
  Map<String, String> variables() {
    var out = new HashMap<>(System.getenv());
    out.putAll(variables);
    return out;
  }

  /** Returns the text of a file, as it was carried or as it is here. */
  public String text(String file) throws IOException {
    String carried = files.get(file);
    return carried == null ? Files.readString(Path.of(file)) : carried;
  }

  @Override public String toString() {
    return "***";
  }
}
