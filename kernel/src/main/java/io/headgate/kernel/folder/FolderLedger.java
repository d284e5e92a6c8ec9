package io.headgate.kernel.folder;

import io.headgate.kernel.CodedFailure;
import io.headgate.kernel.folder.FolderListing.Found;
import io.headgate.kernel.gate.KeptFiles;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;

/**
 * The files of a folder, numbered once and for all in the order in which they were first seen: of those seen at once, the ones
 * changed earlier come first. A time is never a mark up to which files count as read: old files may be moved in.
 *
 * <p>The ledger is kept in the source's folder of the checkpoint, so the folder itself need not be writable, and a copy of
 * the checkpoint has the numbers that its positions are of.
 */
final class FolderLedger {
  /** A place in the order of rows has 23 bits for its file. */
  private static final long MOST = 1L << 23;

  private final FolderPages pages;
  private final FolderPages source;
  private final List<NumberedFile> files = new ArrayList<>();
  private final Map<String, NumberedFile> known = new HashMap<>();
  private String id;

  /** @param kept where the ledger comes from if the checkpoint has none yet; null for a new one */
  FolderLedger(KeptFiles checkpoint, KeptFiles kept) {
    pages = new FolderPages(checkpoint);
    source = kept == null ? null : new FolderPages(kept);
  }

  String id() {
    open();
    return id;
  }

  List<NumberedFile> files() {
    open();
    return files;
  }

  long end() {
    return files().isEmpty() ? 0 : files.get(files.size() - 1).end();
  }

  /** Returns the numbered file with a path, or null. */
  NumberedFile find(String path) {
    open();
    return known.get(path);
  }

  private void open() {
    if (id != null) return;
    String found = pages.readId();
    if (found == null) {
      String taken = source == null ? null : source.readId();
      if (taken != null) pages.write(source.read());
      // Last: a ledger counts once it has an id.
      found = taken == null ? UUID.randomUUID().toString().replace("-", "") : taken;
      pages.writeId(found);
    }
    for (NumberedFile each : pages.read()) take(each);
    id = found;
  }

  private void take(NumberedFile file) {
    files.add(file);
    known.put(file.path(), file);
  }

  /** Numbers the files that have no number yet, and returns whether there were any. */
  boolean number(List<Found> found) {
    open();
    var fresh = new TreeMap<String, Found>();
    for (Found each : found) if (!known.containsKey(each.path())) fresh.put(each.path(), each);
    if (fresh.isEmpty()) return false;
    if (files.size() + fresh.size() > MOST)
      throw new CodedFailure(CodedFailure.LEDGER_BROKEN, "a folder can have at most " + MOST + " files, found "
          + (files.size() + fresh.size()));
    var ordered = new ArrayList<>(fresh.values());
    ordered.sort(Comparator.comparingLong(Found::modified).thenComparing(Found::path));
    var numbered = new ArrayList<NumberedFile>(ordered.size());
    long start = end();
    for (Found each : ordered) {
      var file = new NumberedFile(
          files.size() + numbered.size(), each.path(), each.size(), each.modified(), each.tag(), start);
      numbered.add(file);
      start = file.end();
    }
    pages.append(numbered);
    numbered.forEach(this::take);
    pages.merge(files);
    return true;
  }

  /** Returns the file of a place in the folder read as one long file, or null behind the last. */
  NumberedFile at(long place) {
    int low = 0;
    int high = files().size();
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (files.get(middle).end() <= place) low = middle + 1;
      else high = middle;
    }
    return low < files.size() ? files.get(low) : null;
  }
}
