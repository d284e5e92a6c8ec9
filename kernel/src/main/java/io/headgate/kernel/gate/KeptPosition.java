package io.headgate.kernel.gate;

import java.nio.charset.StandardCharsets;
import java.util.function.Supplier;

/**
 * A position that is decided once in a run, kept in the source's own folder of the checkpoint: where a table ended when its
 * job first started, so that a job that dies while its tables load goes on loading to the same place; or where a source was
 * first read, so that {@code latest} stays what it was.
 */
final class KeptPosition {
  private final KeptFiles files;
  private final String name;
  private String known;

  private KeptPosition(String checkpoint, String name) {
    files = new KeptFiles(checkpoint);
    this.name = name;
  }

  static KeptPosition loadTarget(String checkpoint) {
    return new KeptPosition(checkpoint, "load-target-v1.json");
  }

  static KeptPosition start(String checkpoint) {
    return new KeptPosition(checkpoint, "start-v1.json");
  }

  /** Returns the position; the first call ever in a run makes it the one given. */
  String readOrWrite(Supplier<String> first) {
    if (known != null) return known;
    if (!files.has(name)) {
      // Before the file is begun: whatever keeps the position from being found leaves nothing behind.
      files.create(name, first.get().getBytes(StandardCharsets.UTF_8));
    }
    known = new String(files.read(name), StandardCharsets.UTF_8);
    return known;
  }
}
