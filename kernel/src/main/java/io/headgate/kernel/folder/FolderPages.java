package io.headgate.kernel.folder;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.headgate.kernel.CodedFailure;
import io.headgate.kernel.gate.KeptFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The pages of a ledger, {@code ledger-v1-FIRST-END.json}, which are created and never replaced, and its id in
 * {@code ledger-v1.json}. A checkpoint has one driver at a time, so pages have one writer.
 *
 * <p>A page is written for each look that finds new files. Once there are many of a size, one page is written for all of
 * them; those that it covers are removed long after, since a copy of the checkpoint may be under way. What a page covers with
 * a longer page of the same beginning does not count.
 */
final class FolderPages {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int FORMAT = 1;
  private static final String ID = "ledger-v1.json";
  private static final Pattern NAME = Pattern.compile("ledger-v1-(\\d{12})-(\\d{12})\\.json");
  /** The most files of a plain page: pages are read and written as a whole. */
  private static final int MOST = 20_000;
  /** So many pages behind one another, each no larger than this part of the merged one, are merged. */
  private static final int FACTOR = 16;
  private static final long REMOVED_AFTER_MS = 10 * 60_000L;

  /** A page by its name: the numbers of its files, from first to before end. */
  private record Page(long first, long end) {
    String name() {
      return String.format(Locale.ROOT, "ledger-v1-%012d-%012d.json", first, end);
    }

    long size() {
      return end - first;
    }
  }

  /** A page that a longer one covers, and when that was written. */
  private record Covered(Page page, long since) {}

  private final KeptFiles files;
  /** The pages that count, in their order. */
  private final List<Page> pages = new ArrayList<>();
  private final List<Covered> covered = new ArrayList<>();

  FolderPages(KeptFiles files) {
    this.files = files;
  }

  /** Returns the id; null where there is no ledger. */
  String readId() {
    if (!files.has(ID)) return null;
    JsonNode n = content(ID);
    if (!n.path("id").isTextual()) throw broken(ID, "it has no id", null);
    return n.get("id").asText();
  }

  void writeId(String id) {
    if (!files.has(ID)) write(ID, node().put("id", id));
  }

  /** Returns all numbered files in their order. */
  List<NumberedFile> read() {
    pages.clear();
    covered.clear();
    var all = new ArrayList<Page>();
    for (String name : files.names()) {
      Matcher m = NAME.matcher(name);
      if (m.matches()) all.add(new Page(Long.parseLong(m.group(1)), Long.parseLong(m.group(2))));
    }
    var out = new ArrayList<NumberedFile>();
    long now = System.currentTimeMillis();
    long last = all.stream().mapToLong(Page::end).max().orElse(0);
    while (out.size() < last) {
      long at = out.size();
      Page page = all.stream().filter(each -> each.first == at).max((a, b) -> Long.compare(a.end, b.end)).orElse(null);
      if (page == null) throw broken(new Page(at, last).name(), "file " + at + " is in no page, and later ones are", null);
      read(page, out);
      pages.add(page);
    }
    for (Page each : all) if (!pages.contains(each)) covered.add(new Covered(each, now));
    return out;
  }

  private void read(Page page, List<NumberedFile> out) {
    JsonNode all = content(page.name()).path("files");
    if (all.size() != page.size()) throw broken(page.name(), "its files are not those of its name", null);
    long start = out.isEmpty() ? 0 : out.get(out.size() - 1).end();
    for (JsonNode n : all) {
      if (!n.path("path").isTextual() || !n.path("size").isIntegralNumber() || !n.path("modified").isIntegralNumber())
        throw broken(page.name(), "file " + out.size() + " has no path, size or time", null);
      var file = new NumberedFile(
          out.size(), n.get("path").asText(), n.get("size").asLong(), n.get("modified").asLong(),
          n.path("tag").isTextual() ? n.get("tag").asText() : null, start);
      out.add(file);
      start = file.end();
    }
  }

  /** Writes files that follow the last page. */
  void append(List<NumberedFile> numbered) {
    for (int i = 0; i < numbered.size(); i += MOST) add(numbered.subList(i, Math.min(numbered.size(), i + MOST)));
  }

  /** Writes a whole ledger, of which a driver that died may have written a part. */
  void write(List<NumberedFile> all) {
    List<NumberedFile> there = read();
    append(all.subList(there.size(), all.size()));
  }

  private Page add(List<NumberedFile> part) {
    var page = new Page(part.get(0).number(), part.get(part.size() - 1).number() + 1);
    writePage(page, part);
    pages.add(page);
    return page;
  }

  private void writePage(Page page, List<NumberedFile> part) {
    ObjectNode n = node();
    ArrayNode all = n.putArray("files");
    for (NumberedFile each : part) {
      ObjectNode f = all.addObject().put("path", each.path()).put("size", each.size()).put("modified", each.modified());
      if (each.tag() != null) f.put("tag", each.tag());
    }
    write(page.name(), n);
  }

  /** Merges the last pages where there are many, and removes what was merged a while ago. */
  void merge(List<NumberedFile> all) {
    long now = System.currentTimeMillis();
    for (int from = mergeable(); from >= 0; from = mergeable()) {
      List<Page> some = pages.subList(from, pages.size());
      var merged = new Page(some.get(0).first, some.get(some.size() - 1).end);
      writePage(merged, all.subList((int) merged.first, (int) merged.end));
      for (Page each : some) covered.add(new Covered(each, now));
      some.clear();
      pages.add(merged);
    }
    for (Covered each : List.copyOf(covered))
      if (now - each.since > REMOVED_AFTER_MS) {
        files.delete(each.page.name());
        covered.remove(each);
      }
  }

  /** Returns where the pages begin that are to be merged; -1 if none are. A file is written anew only for many times as many. */
  private int mergeable() {
    for (int from = Math.max(0, pages.size() - FACTOR); from >= 0 && pages.size() - from >= FACTOR; from--) {
      List<Page> some = pages.subList(from, pages.size());
      long sum = some.stream().mapToLong(Page::size).sum();
      long largest = some.stream().mapToLong(Page::size).max().orElse(0);
      // A large page among them stays what it is until as much has come behind it.
      if (sum <= MOST && largest * 2 <= sum) return from;
    }
    return -1;
  }

  private static ObjectNode node() {
    return JSON.createObjectNode().put("format", FORMAT);
  }

  private void write(String name, ObjectNode content) {
    try {
      files.create(name, JSON.writeValueAsBytes(content));
    } catch (JsonProcessingException e) {
      throw new UncheckedIOException(e);
    }
  }

  private JsonNode content(String name) {
    JsonNode n;
    try {
      n = JSON.readTree(files.read(name));
    } catch (IOException e) {
      throw broken(name, "it is not JSON", e);
    }
    if (n.path("format").asInt() != FORMAT)
      throw broken(name, "it has format " + n.path("format") + ", and this release reads " + FORMAT, null);
    return n;
  }

  private CodedFailure broken(String name, String found, Exception cause) {
    return new CodedFailure(CodedFailure.LEDGER_BROKEN, "page " + files + "/" + name + " cannot be read: " + found, cause);
  }
}
