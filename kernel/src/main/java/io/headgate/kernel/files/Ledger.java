package io.headgate.kernel.files;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
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
import java.util.Set;
import java.util.UUID;

/**
 * The files of an embedded topic, numbered once and for all in the order in which they were first seen.
 *
 * <p>Pages of the ledger are created exclusively, so that readers who race agree. Sizes are fixed at that moment:
 * files are published whole, by renaming, and never change. Names that begin with {@code _} or {@code .} are no part of the topic.
 */
final class Ledger {
  private static final int FORMAT = 1;
  /** So many plain pages are merged, but for the newest: readers that are a moment late find those in their places. */
  private static final int MANY_PAGES = 256;
  private static final int NEWEST_PAGES = 128;
  /** A merged page is merged again with what follows once that is no less than this part of it: few pages, seldom rewritten. */
  private static final int GROWTH = 4;
  private static final long VANISHING_NANOS = 2_000_000_000L;

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
  private final LedgerPages pages;
  private String topic;
  private final List<Entry> entries = new ArrayList<>();
  private final Set<String> known = new HashSet<>();

  private final int manyPages;
  private final int newestPages;

  Ledger(Path root) {
    this(root, MANY_PAGES, NEWEST_PAGES);
  }

  Ledger(Path root, int manyPages, int newestPages) {
    this.root = root;
    this.manyPages = manyPages;
    this.newestPages = newestPages;
    pages = new LedgerPages(root);
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
      checkNew(file);
      ObjectNode n = LedgerPages.JSON.createObjectNode();
      n.put("format", FORMAT);
      n.put("id", UUID.randomUUID().toString().replace("-", ""));
      n.put("created", System.currentTimeMillis());
      n.put("partitions", 1);
      pages.publish(file, n, false);
    }
    try {
      JsonNode n = LedgerPages.JSON.readTree(file.toFile());
      if (n.path("format").asInt() == FORMAT && n.path("id").isTextual()) return n.path("id").asText();
      throw new CodedFailure(CodedFailure.TOPIC_UNREADABLE, file + " has format " + n.path("format") + " and id " + n.path("id")
          + ", and this release reads format " + FORMAT);
    } catch (JsonProcessingException e) {
      throw new CodedFailure(CodedFailure.TOPIC_UNREADABLE, file + " is not JSON: " + e.getOriginalMessage(), e);
    }
  }

  /** Refuses to make a topic anew over a ledger: its jobs would read every record once more. */
  private void checkNew(Path file) throws IOException {
    long deadline = System.nanoTime() + VANISHING_NANOS;
    // The file is made before the first page, and a folder that is being removed may lose it first.
    while (!pages.list().isEmpty() && !Files.exists(file)) {
      if (System.nanoTime() > deadline)
        throw new CodedFailure(CodedFailure.TOPIC_UNREADABLE, file + " is missing, and the topic has a ledger, which belongs to the lost id");
      try {
        Thread.sleep(50);
      } catch (InterruptedException e) {
        throw CodedFailure.interrupted("a topic's folder");
      }
    }
  }

  private void readNew() throws IOException {
    int had = entries.size();
    pages.readNew(entries);
    for (Entry entry : entries.subList(had, entries.size())) known.add(entry.path());
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
            throw new CodedFailure(CodedFailure.PATH_NOT_UTF8, "file " + child + " of an embedded topic cannot be read: "
                + "its name is not UTF-8, so the stored name would not match the file");
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
    var numbered = new ArrayList<Entry>();
    long start = end();
    long now = System.currentTimeMillis();
    for (Found f : found) {
      numbered.add(new Entry(entries.size() + numbered.size(), f.path, f.size, start, now));
      start += f.size;
    }
    boolean first = pages.append(numbered);
    readNew();
    if (first) mergePages();
    return first;
  }

  private void mergePages() throws IOException {
    List<LedgerPages.Page> all = pages.list();
    List<LedgerPages.Page> plain = all.stream()
        .filter(page -> !page.isMerged() && LedgerPages.covering(all, page.first()) == null).toList();
    if (plain.size() < manyPages) return;
    long first = plain.get(0).first();
    long end = plain.get(plain.size() - newestPages).first();
    LedgerPages.Page before = LedgerPages.covering(all, first - 1);
    while (before != null && before.end() - before.first() <= GROWTH * (end - first)) {
      first = before.first();
      before = LedgerPages.covering(all, first - 1);
    }
    pages.merge(entries.subList((int) first, (int) end));
  }
}
