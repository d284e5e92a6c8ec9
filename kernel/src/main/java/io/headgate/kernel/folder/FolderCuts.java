package io.headgate.kernel.folder;

import java.util.ArrayList;
import java.util.List;

/**
 * Where batches and their tasks end in a folder read as one long file. Cuts may be anywhere, since records belong to the part
 * that they begin in; a file that cannot be cut is read whole, and one that is small is not worth a cut.
 */
final class FolderCuts {
  /** Each part of a file costs a look at its schema. */
  private static final long WORTH_A_CUT = 4 << 20;

  private final FolderLedger ledger;
  private final FolderOptions options;

  FolderCuts(FolderLedger ledger, FolderOptions options) {
    this.ledger = ledger;
    this.options = options;
  }

  /** Returns a place as bytes from the beginning. */
  long place(FolderOffset at) {
    return at.file >= ledger.files().size() ? ledger.end() : ledger.files().get((int) at.file).start() + at.at;
  }

  /** Returns where a batch ends. */
  FolderOffset end(FolderOffset from) {
    long begin = place(from);
    if (begin >= ledger.end()) return from;
    long wanted = cut(begin + options.maxBytes(), begin);
    NumberedFile file = ledger.at(wanted);
    if (file == null) return new FolderOffset(ledger.id(), ledger.files().size(), 0);
    return new FolderOffset(ledger.id(), file.number(), wanted - file.start());
  }

  /** Returns the place of a cut near a place: behind another one, and in no file that is read whole. */
  private long cut(long place, long behind) {
    NumberedFile file = ledger.at(place);
    if (file == null) return ledger.end();
    long at = place - file.start();
    if (at >= file.size()) return file.end();
    if (isCut(file)) return place;
    return file.start() > behind ? file.start() : file.end();
  }

  private boolean isCut(NumberedFile file) {
    if (!options.isSplittable(file.path())) return false;
    return options.isLines() || file.size() >= WORTH_A_CUT;
  }

  /** Returns what the tasks of a batch read. */
  List<FolderSplit> splits(FolderOffset from, FolderOffset to) {
    long begin = place(from);
    long end = place(to);
    int count = (int) Math.max(1, Math.min(options.splits(), end - begin));
    int lane = ledger.id().hashCode() & Integer.MAX_VALUE;
    var out = new ArrayList<FolderSplit>();
    long last = begin;
    for (int i = 1; i <= count; i++) {
      long cut = i == count ? end : Math.min(end, cut(begin + (end - begin) * i / count, last));
      // Also where nothing is left: a task's number says whose transaction it goes on with.
      out.add(new FolderSplit(ranges(last, Math.max(last, cut)), lane));
      last = Math.max(last, cut);
    }
    return out;
  }

  private List<FolderSplit.Range> ranges(long begin, long end) {
    var out = new ArrayList<FolderSplit.Range>();
    for (NumberedFile file = ledger.at(begin); file != null && file.start() < end; file = ledger.at(file.end())) {
      long from = Math.max(begin, file.start()) - file.start();
      long to = Math.min(end, file.end()) - file.start();
      // What is counted for opening a file follows its bytes. An empty file has one part as well: it may be corrupted.
      if (from < file.size() || from == 0) out.add(new FolderSplit.Range(file, from, Math.min(to, file.size())));
    }
    return out;
  }
}
