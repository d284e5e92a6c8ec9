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
  private static volatile String folder = System.getenv("HEADGATE_CRASH_DIR");
  private static final long OTHERS_FINISH_MS = 500;
  private static final long LOOK_MS = 20;
  private static final int EXIT = 77;

  private CrashPoint() {}

  /** Has a test of this JVM name the folder; null for none. */
  public static void arm(String where) {
    folder = where;
  }

  public static void at(String name) {
    if (folder == null) return;
    Path dir = Path.of(folder);
    hold(dir, name);
    if (takes(dir.resolve(name + ".fail"))) throw new IllegalStateException("failed at " + name + ", as a test wants it");
    if (takes(dir.resolve(name))) die();
  }

  private static void hold(Path dir, String name) {
    Path hold = dir.resolve(name + ".hold");
    try {
      while (Files.exists(hold)) {
        Files.write(dir.resolve(name + ".held"), new byte[0]);
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
