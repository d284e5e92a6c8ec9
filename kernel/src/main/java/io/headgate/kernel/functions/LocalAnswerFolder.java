package io.headgate.kernel.functions;

import io.headgate.kernel.files.Publishing;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.util.List;
import java.util.UUID;
import java.util.stream.Stream;

/** Answers in a folder of this machine, or in one that all hosts share. */
final class LocalAnswerFolder implements AnswerFolder {
  private final Path root;

  LocalAnswerFolder(String root) {
    this.root = Path.of(root);
  }

  @Override public List<String> list(String folder) throws IOException {
    try (Stream<Path> files = Files.list(root.resolve(folder))) {
      return files.map(file -> file.getFileName().toString()).sorted().toList();
    } catch (NoSuchFileException | NotDirectoryException e) {
      return List.of();
    }
  }

  @Override public byte[] read(String file) throws IOException {
    return Files.readAllBytes(root.resolve(file));
  }

  @Override public boolean create(String file, byte[] content) throws IOException {
    Path place = root.resolve(file);
    Files.createDirectories(place.getParent());
    Path making = place.resolveSibling("." + UUID.randomUUID() + ".tmp");
    Files.write(making, content);
    return Publishing.publish(making, place);
  }

  @Override public void remove(String folder) throws IOException {
    for (String file : list(folder)) Files.deleteIfExists(root.resolve(folder).resolve(file));
    Files.deleteIfExists(root.resolve(folder));
  }

  @Override public String nameOf(String file) {
    return root.resolve(file).toString();
  }
}
