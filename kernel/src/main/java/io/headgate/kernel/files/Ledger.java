package io.headgate.kernel.files;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.headgate.kernel.CodedFailure;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.UUID;

/**
 * The files of an embedded topic, numbered once and for all in the order in which they were first seen.
 *
 * <p>Each entry of the ledger is a file created exclusively, so that readers who race agree. Sizes are fixed at that moment:
 * files are published whole, by renaming, and never change. Names that begin with {@code _} or {@code .} are no part of the topic.
 */
final class Ledger {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int FORMAT = 1;

  /**
   * A numbered file.
   *
   * @param start the bytes of all files before it: the topic read as one long file
   * @param seen when it was numbered, in epoch milliseconds
   */
  record Entry(long number, String path, long size, long start, long seen) {
    long end() {
      return start + size;
    }
  }

  private record Found(String path, long size, long modified) {}

  private final Path root;
  private String topic;
  private final List<Entry> entries = new ArrayList<>();
  private final Set<String> known = new HashSet<>();

  Ledger(Path root) {
    this.root = root;
  }

  /** Returns the topic's id, which a topic that is made anew has not. */
  String topic() {
    return topic;
  }

  List<Entry> entries() {
    return entries;
  }

  /** Returns the bytes of all numbered files. */
  long end() {
    return entries.isEmpty() ? 0 : entries.get(entries.size() - 1).end();
  }

  /** Takes in what others numbered, and numbers what nobody has. */
  void refresh() throws IOException {
    String now = readOrCreateTopic();
    if (!now.equals(topic)) {
      topic = now;
      entries.clear();
      known.clear();
    }
    for (;;) {
      readNew();
      List<Found> found = findNew();
      if (found.isEmpty() || append(found)) return;
      // Another reader was first: its entries are read, then whatever is left is numbered.
    }
  }

  private String readOrCreateTopic() throws IOException {
    Path file = root.resolve("_topic.json");
    if (!Files.exists(file)) {
      ObjectNode n = JSON.createObjectNode();
      n.put("format", FORMAT);
      n.put("id", UUID.randomUUID().toString().replace("-", ""));
      n.put("created", System.currentTimeMillis());
      n.put("partitions", 1);
      publish(file, n);
    }
    JsonNode n = JSON.readTree(file.toFile());
    if (n.path("format").asInt() != FORMAT)
      throw new IOException(file + " has format " + n.path("format") + ", and this release reads " + FORMAT);
    return n.get("id").asText();
  }

  private Path entryFile(long first) {
    return root.resolve("_ledger").resolve(String.format(Locale.ROOT, "%020d.json", first));
  }

  private void readNew() throws IOException {
    for (;;) {
      Path file = entryFile(entries.size());
      if (!Files.exists(file)) return;
      JsonNode n = JSON.readTree(file.toFile());
      if (n.path("format").asInt() != FORMAT)
        throw new IOException(file + " has format " + n.path("format") + ", and this release reads " + FORMAT);
      for (JsonNode f : n.get("files")) {
        entries.add(new Entry(
            entries.size(), f.get("path").asText(), f.get("size").asLong(), f.get("start").asLong(), f.get("seen").asLong()));
        known.add(f.get("path").asText());
      }
    }
  }

  private List<Found> findNew() throws IOException {
    var found = new ArrayList<Found>();
    walk(root, "", found);
    found.sort(Comparator.comparingLong(Found::modified).thenComparing(Found::path));
    return found;
  }

  private void walk(Path folder, String prefix, List<Found> found) throws IOException {
    try (DirectoryStream<Path> children = Files.newDirectoryStream(folder)) {
      for (Path child : children) {
        String name = child.getFileName().toString();
        if (name.startsWith("_") || name.startsWith(".")) continue;
        String path = prefix + name;
        if (known.contains(path)) continue;
        BasicFileAttributes a;
        try {
          a = Files.readAttributes(child, BasicFileAttributes.class);
        } catch (NoSuchFileException e) {
          continue;
        }
        if (a.isDirectory()) {
          // A link to a folder could lead in circles.
          if (!Files.isSymbolicLink(child)) walk(child, path + "/", found);
        } else if (name.endsWith(".jsonl")) {
          if (!leadsTo(path, child))
            throw new CodedFailure(CodedFailure.PATH_NOT_UTF8, "file " + child + " of an embedded topic cannot be numbered: "
                + "its name is not UTF-8, and what would be stored would not lead back to it");
          found.add(new Found(path, a.size(), a.lastModifiedTime().toMillis()));
        }
      }
    } catch (NoSuchFileException | NotDirectoryException e) {
      // Removed while it was looked at: there is nothing of it to number.
    }
  }

  private boolean leadsTo(String path, Path file) {
    try {
      return root.resolve(path).equals(file);
    } catch (InvalidPathException e) {
      return false;
    }
  }

  private boolean append(List<Found> found) throws IOException {
    ObjectNode n = JSON.createObjectNode();
    n.put("format", FORMAT);
    n.put("first", entries.size());
    var files = n.putArray("files");
    long start = end();
    long now = System.currentTimeMillis();
    for (Found f : found) {
      files.addObject().put("path", f.path).put("size", f.size).put("start", start).put("seen", now);
      start += f.size;
    }
    boolean first = publish(entryFile(entries.size()), n);
    readNew();
    return first;
  }

  /** Creates a file whole or not at all; returns false if it was there already. */
  private boolean publish(Path file, ObjectNode content) throws IOException {
    Path making = root.resolve("_tmp").resolve(file.getFileName() + "." + UUID.randomUUID());
    Files.createDirectories(making.getParent());
    Files.createDirectories(file.getParent());
    Files.write(making, JSON.writeValueAsBytes(content));
    return Publishing.publish(making, file);
  }
}
