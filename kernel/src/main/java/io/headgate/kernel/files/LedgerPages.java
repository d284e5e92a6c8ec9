package io.headgate.kernel.files;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.headgate.kernel.CodedFailure;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.TreeSet;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The pages of a ledger on disk, which are created and never replaced.
 *
 * <p>A plain page, {@code FIRST.json}, is written for each look that finds new files; of readers that race for a number
 * exactly one creates it. A merged page, {@code FIRST-END.json}, holds what many pages held, which are then removed. The
 * name of a plain page that was removed is free again, and a reader that was asleep may take it: so a merged page overrules
 * plain ones, and a plain page counts only if a listing after it was read has no merged page for its number.
 */
final class LedgerPages {
  static final ObjectMapper JSON = new ObjectMapper();
  private static final int PLAIN = 1;
  private static final int MERGED = 2;
  private static final Pattern NAME = Pattern.compile("(\\d{20})(?:-(\\d{20}))?\\.json");
  /** A listing that races with other readers may lack a page, but not time and again. */
  private static final int TRIES = 20;

  /**
   * A page by its name.
   *
   * @param end the number behind its last file; that of a plain page is not known from its name, and is 0
   */
  record Page(long first, long end) implements Comparable<Page> {
    boolean isMerged() {
      return end > 0;
    }

    boolean covers(long number) {
      return isMerged() && first <= number && number < end;
    }

    String name() {
      return isMerged() ? String.format(Locale.ROOT, "%020d-%020d.json", first, end) : String.format(Locale.ROOT, "%020d.json", first);
    }

    @Override public int compareTo(Page other) {
      int byFirst = Long.compare(first, other.first);
      return byFirst != 0 ? byFirst : Long.compare(end, other.end);
    }
  }

  private final Path root;
  private final Path folder;

  LedgerPages(Path root) {
    this.root = root;
    folder = root.resolve("_ledger");
  }

  /** Returns all pages by their numbers. Two listings that agree show none that was there before and after. */
  List<Page> list() throws IOException {
    TreeSet<Page> before = listOnce();
    for (int i = 0; i < TRIES; i++) {
      TreeSet<Page> now = listOnce();
      if (now.equals(before)) break;
      before = now;
    }
    return new ArrayList<>(before);
  }

  private TreeSet<Page> listOnce() throws IOException {
    var found = new TreeSet<Page>();
    try (DirectoryStream<Path> children = Files.newDirectoryStream(folder)) {
      for (Path child : children) {
        Matcher m = NAME.matcher(child.getFileName().toString());
        if (m.matches()) found.add(new Page(Long.parseLong(m.group(1)), m.group(2) == null ? 0 : Long.parseLong(m.group(2))));
      }
    } catch (NoSuchFileException e) {
      // Nobody has read the topic yet.
    }
    return found;
  }

  /** Returns the merged page that holds a number and reaches furthest, or null. */
  static Page covering(List<Page> pages, long number) {
    Page best = null;
    for (Page page : pages) if (page.covers(number) && (best == null || page.end() > best.end())) best = page;
    return best;
  }

  /**
   * Appends to {@code entries} all that the pages have behind them.
   *
   * @throws CodedFailure TOPIC_LEDGER_BROKEN, with the page
   */
  void readNew(List<Ledger.Entry> entries) throws IOException {
    for (int tries = 0; tries < TRIES;) {
      List<Page> pages = list();
      Page merged = covering(pages, entries.size());
      try {
        List<Ledger.Entry> read = merged == null ? readPlain(pages, entries) : read(merged, entries.size(), end(entries));
        if (read.isEmpty() && last(pages) < entries.size()) return;
        // Nothing, though there are pages for later numbers: the listing was too early, or one is gone.
        if (read.isEmpty()) tries++;
        entries.addAll(read);
      } catch (NoSuchFileException e) {
        // Merged with others since the listing.
        tries++;
      }
    }
    throw broken(new Page(entries.size(), 0), "it is missing, and later ones are there", null);
  }

  private static long end(List<Ledger.Entry> entries) {
    return entries.isEmpty() ? 0 : entries.get(entries.size() - 1).end();
  }

  private static long last(List<Page> pages) {
    long last = -1;
    for (Page page : pages) last = Math.max(last, page.isMerged() ? page.end() - 1 : page.first());
    return last;
  }

  /** Returns what the plain pages hold that follow; nothing where there is none, or a merged page has come to overrule them. */
  private List<Ledger.Entry> readPlain(List<Page> pages, List<Ledger.Entry> entries) throws IOException {
    var there = new TreeSet<>(pages);
    var read = new ArrayList<Ledger.Entry>();
    long first = entries.size();
    for (Page page = new Page(first, 0); there.contains(page); page = new Page(first + read.size(), 0))
      read.addAll(read(page, page.first(), read.isEmpty() ? end(entries) : end(read)));
    if (read.isEmpty()) return read;
    for (Page page : list())
      if (page.isMerged() && page.first() < first + read.size() && page.end() > first) return List.of();
    return read;
  }

  /**
   * Returns a page's entries from a number on.
   *
   * @param start where the file of this number begins in the topic read as one long file
   */
  private List<Ledger.Entry> read(Page page, long from, long start) throws IOException {
    JsonNode n;
    try {
      n = JSON.readTree(Files.readAllBytes(folder.resolve(page.name())));
    } catch (JsonProcessingException e) {
      throw broken(page, "it is not JSON: " + e.getOriginalMessage(), e);
    }
    int known = page.isMerged() ? MERGED : PLAIN;
    if (n.path("format").asInt() != known)
      throw broken(page, "it has format " + n.path("format") + ", and this release reads " + known, null);
    JsonNode files = n.path("files");
    boolean whole = page.isMerged() ? files.size() == page.end() - page.first() : !files.isEmpty();
    if (n.path("first").asLong(-1) != page.first() || !whole)
      throw broken(page, "its files are not those of its name", null);
    var read = new ArrayList<Ledger.Entry>();
    for (long number = from; number < page.first() + files.size(); number++) {
      Ledger.Entry entry = entry(number, files.get((int) (number - page.first())));
      if (entry == null || entry.start() != (read.isEmpty() ? start : end(read)))
        throw broken(page, "file " + number + " has no path, size or place in the topic", null);
      read.add(entry);
    }
    return read;
  }

  private static Ledger.Entry entry(long number, JsonNode f) {
    if (!f.path("path").isTextual() || !f.path("size").isIntegralNumber() || !f.path("start").isIntegralNumber()
        || !f.path("seen").isIntegralNumber() || f.path("size").asLong() < 0) return null;
    return new Ledger.Entry(number, f.path("path").asText(), f.path("size").asLong(), f.path("start").asLong(), f.path("seen").asLong());
  }

  private CodedFailure broken(Page page, String found, Exception cause) {
    return new CodedFailure(CodedFailure.LEDGER_BROKEN, "page " + folder.resolve(page.name()) + " cannot be read: " + found, cause);
  }

  /** Creates a plain page; returns false if these numbers are taken, and then nothing was written. */
  boolean append(List<Ledger.Entry> entries) throws IOException {
    Page page = new Page(entries.get(0).number(), 0);
    if (!publish(folder.resolve(page.name()), content(PLAIN, entries), false)) return false;
    if (covering(list(), page.first()) == null) return true;
    // The numbers were given long ago, and their page has been merged: this one must not count, and does not.
    Files.deleteIfExists(folder.resolve(page.name()));
    return false;
  }

  /** Creates the merged page for entries, waits for the disk, and removes the pages that it holds. */
  void merge(List<Ledger.Entry> entries) throws IOException {
    var merged = new Page(entries.get(0).number(), entries.get(entries.size() - 1).number() + 1);
    publish(folder.resolve(merged.name()), content(MERGED, entries), true);
    List<Page> pages = list();
    for (int i = 0; i < pages.size(); i++) {
      Page page = pages.get(i);
      if (page.equals(merged) || page.first() < merged.first()) continue;
      // A plain page ends where the next page begins; the last one of all is never merged.
      long end = page.isMerged() ? page.end() : nextFirst(pages, i);
      if (end <= merged.end()) Files.deleteIfExists(folder.resolve(page.name()));
    }
    // An older release begins at this page: it must refuse the ledger, and not number all files anew.
    if (merged.first() == 0) {
      ObjectNode n = JSON.createObjectNode();
      publish(folder.resolve(new Page(0, 0).name()), n.put("format", MERGED).put("first", 0), false);
    }
  }

  private static long nextFirst(List<Page> pages, int at) {
    for (int i = at + 1; i < pages.size(); i++) if (pages.get(i).first() > pages.get(at).first()) return pages.get(i).first();
    return Long.MAX_VALUE;
  }

  private static ObjectNode content(int format, List<Ledger.Entry> entries) {
    ObjectNode n = JSON.createObjectNode();
    n.put("format", format);
    n.put("first", entries.get(0).number());
    var files = n.putArray("files");
    for (Ledger.Entry e : entries)
      files.addObject().put("path", e.path()).put("size", e.size()).put("start", e.start()).put("seen", e.seen());
    return n;
  }

  /** Creates a file whole or not at all; returns false if it was there already. */
  boolean publish(Path file, ObjectNode content, boolean sync) throws IOException {
    Path making = root.resolve("_tmp").resolve(file.getFileName() + "." + UUID.randomUUID());
    Files.createDirectories(making.getParent());
    Files.createDirectories(file.getParent());
    Files.write(making, JSON.writeValueAsBytes(content));
    if (sync) force(making, StandardOpenOption.WRITE);
    boolean first = Publishing.publish(making, file);
    if (sync) force(file.getParent(), StandardOpenOption.READ);
    return first;
  }

  private static void force(Path path, StandardOpenOption how) throws IOException {
    try (FileChannel channel = FileChannel.open(path, how)) {
      channel.force(true);
    }
  }
}
