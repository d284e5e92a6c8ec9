package io.headgate.kernel.testing;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Places where a test can have the JVM die, a task fail, or either wait: {@code HEADGATE_CRASH_DIR} names a folder, and a file
 * in it the place.
 *
 * <p>A file {@code NAME} is one crash, and gone once the place was reached; a file {@code NAME.fail} likewise is one exception.
 * A file {@code NAME.hold} makes whoever gets there wait, and say so by a file {@code NAME.held}, until it is removed.
 */
public final class CrashPoint {
  private static final String DIR = System.getenv("HEADGATE_CRASH_DIR");
  private static final boolean ARMED = DIR != null;
  private static final long OTHERS_FINISH_MS = 500;
  private static final long LOOK_MS = 20;
  private static final int EXIT = 77;

  private CrashPoint() {}

  public static void at(String name) {
    if (!ARMED) return;
    hold(name);
    if (takes(Path.of(DIR).resolve(name + ".fail"))) throw new IllegalStateException("failed at " + name + ", as a test wants it");
    if (takes(Path.of(DIR).resolve(name))) die();
  }

  private static void hold(String name) {
    Path hold = Path.of(DIR).resolve(name + ".hold");
    try {
      while (Files.exists(hold)) {
        Files.write(Path.of(DIR).resolve(name + ".held"), new byte[0]);
        Thread.sleep(LOOK_MS);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Returns whether there is such a file; of several tasks that get here, one takes it. */
  private static boolean takes(Path file) {
    try {
      return Files.deleteIfExists(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void die() {
    try {
      Thread.sleep(OTHERS_FINISH_MS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    Runtime.getRuntime().halt(EXIT);
  }
}
