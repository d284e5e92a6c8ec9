package io.headgate.kernel.rolling;

import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.Serializable;
import java.nio.file.Path;
import java.util.List;

/**
 * The folder of an output, on this machine or on an object store. A file appears whole, and one that is there is never replaced.
 *
 * <p>Names are relative to the folder, with slashes.
 */
interface Place extends Serializable {
  /** @param modified in epoch milliseconds */
  record Entry(String name, long size, long modified) implements Serializable {}

  /** A file in the making: nobody sees it before it is published. */
  interface Making extends Closeable {
    OutputStream out();

    /** Returns whether the file is this one; false leaves the one that is there. */
    boolean publish() throws IOException;

    /** Gives up what was not published. */
    @Override void close() throws IOException;
  }

  /** @param path a folder of this machine, or an address with a scheme */
  static Place of(String path) {
    return path.contains("://") ? new StorePlace(path) : new LocalPlace(path);
  }

  /** Returns the files directly in a folder, by name; none where there is no such folder. */
  List<Entry> list(String folder) throws IOException;

  /** Returns the names of the folders directly in a folder. */
  List<String> folders(String folder) throws IOException;

  boolean exists(String name) throws IOException;

  /** Returns the size of a file; negative where there is none. */
  long size(String name) throws IOException;

  InputStream open(String name) throws IOException;

  /** @param work a hidden folder for files in the making */
  Making make(String name, String work) throws IOException;

  /** Publishes a finished file of this machine, which is gone afterwards; returns false where the name is taken. */
  boolean publish(Path finished, String name) throws IOException;

  /** Returns a folder of this machine for files that are published later. */
  Path work(String work) throws IOException;

  /** Deletes a file, or a folder with all that it holds; it may be gone already. */
  void delete(String name) throws IOException;

  /** Returns a name as messages have it. */
  String nameOf(String name);

  /** Writes a small file; returns false, and leaves the one that is there, if there is one of this name. */
  default boolean create(String name, byte[] content, String work) throws IOException {
    try (Making making = make(name, work)) {
      making.out().write(content);
      return making.publish();
    }
  }

  /** Returns the content of a small file. */
  default byte[] read(String name) throws IOException {
    try (InputStream in = open(name)) {
      return in.readAllBytes();
    }
  }
}
