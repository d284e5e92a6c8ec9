package io.headgate.kernel;

import java.io.IOException;
import java.net.URL;
import java.util.Collections;
import java.util.Enumeration;

/**
 * The extensions that Spark looks for when a session starts, without those of its machine learning.
 *
 * <p>These (InternalFunctionRegistration, seen in 4.3.0) start Scala's reflection, which takes a second of CPU, to register
 * functions that only Spark Connect calls. Extensions of other jars are found as before.
 */
public final class SessionExtensions extends ClassLoader {
  private static final String SERVICES = "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider";

  private SessionExtensions(ClassLoader parent) {
    super(parent);
  }

  /** Hides them from this thread until {@link #show}. */
  public static void hide() {
    var thread = Thread.currentThread();
    thread.setContextClassLoader(new SessionExtensions(thread.getContextClassLoader()));
  }

  /** Shows them again. */
  public static void show() {
    var thread = Thread.currentThread();
    if (thread.getContextClassLoader() instanceof SessionExtensions hiding) thread.setContextClassLoader(hiding.getParent());
  }

  @Override
  public Enumeration<URL> getResources(String name) throws IOException {
    var all = super.getResources(name);
    if (!name.equals(SERVICES)) return all;
    var others = Collections.list(all);
    others.removeIf(file -> file.getPath().contains("/spark-mllib_"));
    return Collections.enumeration(others);
  }
}
