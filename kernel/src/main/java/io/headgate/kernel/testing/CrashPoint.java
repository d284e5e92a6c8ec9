package io.headgate.kernel.testing;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Places where a test can have the JVM die or wait: {@code HEADGATE_CRASH_DIR} names a folder, and a file in it the place.
 *
 * <p>A file {@code NAME} is one crash, and gone once the place was reached. A file {@code NAME.hold} makes whoever gets there
 * wait, and say so by a file {@code NAME.held}, until it is removed.
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
    reach(Path.of(DIR).resolve(name));
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

  private static void reach(Path file) {
    try {
      // Of several tasks that get here, one takes the file.
      if (!Files.deleteIfExists(file)) return;
      Thread.sleep(OTHERS_FINISH_MS);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    Runtime.getRuntime().halt(EXIT);
  }
}
