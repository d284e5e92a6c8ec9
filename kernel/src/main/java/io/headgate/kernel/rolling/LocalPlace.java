package io.headgate.kernel.rolling;

import io.headgate.kernel.files.Publishing;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.UUID;

/** An output's folder on this machine, or on a file system that all machines share. */
final class LocalPlace implements Place {
  private static final int BUFFER = 128 * 1024;

  private final String root;

  LocalPlace(String root) {
    this.root = root;
  }

  private Path path(String name) {
    return Path.of(root, name);
  }

  @Override public List<Entry> list(String folder) throws IOException {
    var out = new ArrayList<Entry>();
    try (var files = Files.newDirectoryStream(path(folder))) {
      for (Path file : files) {
        BasicFileAttributes is = attributes(file);
        if (is == null || !is.isRegularFile()) continue;
        out.add(new Entry(file.getFileName().toString(), is.size(), is.lastModifiedTime().toMillis()));
      }
    } catch (NoSuchFileException | NotDirectoryException e) {
      return List.of();
    }
    out.sort(Comparator.comparing(Entry::name));
    return out;
  }

  @Override public List<String> folders(String folder) throws IOException {
    try (var files = Files.list(path(folder))) {
      return files.filter(Files::isDirectory).map(file -> file.getFileName().toString()).sorted().toList();
    } catch (NoSuchFileException e) {
      return List.of();
    }
  }

  /** Returns null for a file that is gone. */
  private static BasicFileAttributes attributes(Path file) throws IOException {
    try {
      return Files.readAttributes(file, BasicFileAttributes.class);
    } catch (NoSuchFileException e) {
      return null;
    }
  }

  @Override public boolean exists(String name) {
    return Files.exists(path(name));
  }

  @Override public long size(String name) throws IOException {
    BasicFileAttributes is = attributes(path(name));
    return is == null ? -1 : is.size();
  }

  @Override public InputStream open(String name) throws IOException {
    return Files.newInputStream(path(name));
  }

  @Override public Path work(String work) throws IOException {
    return Files.createDirectories(path(work));
  }

  @Override public Making make(String name, String work) throws IOException {
    Path making = work(work).resolve(UUID.randomUUID().toString());
    return new LocalMaking(making, name);
  }

  @Override public boolean publish(Path finished, String name) throws IOException {
    Path place = path(name);
    Files.createDirectories(place.getParent());
    return Publishing.publish(finished, place);
  }

  @Override public void delete(String name) throws IOException {
    Path path = path(name);
    if (!Files.isDirectory(path)) {
      Files.deleteIfExists(path);
      return;
    }
    Files.walkFileTree(path, new SimpleFileVisitor<>() {
      @Override public FileVisitResult visitFile(Path file, BasicFileAttributes is) throws IOException {
        Files.deleteIfExists(file);
        return FileVisitResult.CONTINUE;
      }

      @Override public FileVisitResult visitFileFailed(Path file, IOException e) throws IOException {
        if (e instanceof NoSuchFileException) return FileVisitResult.CONTINUE;
        throw e;
      }

      @Override public FileVisitResult postVisitDirectory(Path folder, IOException e) throws IOException {
        Files.deleteIfExists(folder);
        return FileVisitResult.CONTINUE;
      }
    });
  }

  @Override public String nameOf(String name) {
    return path(name).toString();
  }

  private final class LocalMaking implements Making {
    private final Path making;
    private final String name;
    private final OutputStream out;
    private boolean ended;

    LocalMaking(Path making, String name) throws IOException {
      this.making = making;
      this.name = name;
      out = new BufferedOutputStream(Files.newOutputStream(making), BUFFER);
    }

    @Override public OutputStream out() {
      return out;
    }

    @Override public boolean publish() throws IOException {
      out.close();
      ended = true;
      return LocalPlace.this.publish(making, name);
    }

    @Override public void close() throws IOException {
      if (ended) return;
      ended = true;
      try {
        out.close();
      } finally {
        Files.deleteIfExists(making);
      }
    }
  }
}
