package io.headgate.kernel.state;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;

/** The files of one state store: in a folder of this machine, or on an object store. */
final class StateFolder {
  private final String place;
  /** Null for a folder of this machine. */
  private final FileSystem store;

  /** @param place a path, or an address with a scheme */
  StateFolder(String place, Configuration hadoop) throws IOException {
    this.place = place;
    store = place.contains("://") ? path("").getFileSystem(hadoop) : null;
  }

  /** Returns a file as Spark takes it. */
  org.apache.hadoop.fs.Path path(String name) {
    String file = name.isEmpty() ? place : place + "/" + name;
    return place.contains("://") ? new org.apache.hadoop.fs.Path(file) : new org.apache.hadoop.fs.Path(Path.of(file).toUri());
  }

  boolean has(String name) throws IOException {
    return store == null ? Files.isRegularFile(local(name)) : store.exists(path(name));
  }

  InputStream open(String name) throws IOException {
    return store == null ? Files.newInputStream(local(name)) : store.open(path(name));
  }

  /** Makes a file readable under a local path: by a link, or a copy. */
  void bring(String name, Path target) throws IOException {
    if (!has(name)) throw new NoSuchFileException(path(name).toString());
    if (store == null) {
      Files.createSymbolicLink(target, local(name).toAbsolutePath());
      return;
    }
    try (InputStream in = open(name)) {
      Files.copy(in, target);
    }
  }

  @Override public String toString() {
    return place;
  }

  private Path local(String name) {
    return Path.of(place, name);
  }
}
