package io.headgate.kernel.sink;

import io.headgate.kernel.files.Publishing;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * One file of an output topic in the making: invisible until it is published, and published at most once.
 *
 * <p>A file that exists is never replaced. A replay holds the same rows, perhaps in another order, and discards its own.
 */
final class TopicFile {
  private final Path making;
  private final Path published;
  /** Null where the file is there already. */
  private final OutputStream out;

  TopicFile(Path topic, String name, int partition, long task) throws IOException {
    published = topic.resolve("part-" + partition).resolve(name + ".jsonl");
    making = topic.resolve("_tmp").resolve(name + "." + ProcessHandle.current().pid() + "-" + task);
    if (Files.exists(published)) {
      out = null;
      return;
    }
    Files.createDirectories(making.getParent());
    Files.createDirectories(published.getParent());
    out = new BufferedOutputStream(Files.newOutputStream(making), 128 * 1024);
  }

  void line(byte[] bytes, int start, int length) throws IOException {
    if (out == null) return;
    try {
      out.write(bytes, start, length);
      out.write('\n');
    } catch (IOException e) {
      throw named(e);
    }
  }

  /** The system says that a disk is full, and not for which file. */
  private IOException named(IOException e) {
    return new IOException("cannot write " + making + ": " + e.getMessage(), e);
  }

  void publish() throws IOException {
    if (out == null) return;
    try {
      out.close();
    } catch (IOException e) {
      throw named(e);
    }
    // Another try of the same task may have been first: its rows are the same.
    Publishing.publish(making, published);
  }

  void discard() throws IOException {
    if (out == null) return;
    out.close();
    Files.deleteIfExists(making);
  }
}
