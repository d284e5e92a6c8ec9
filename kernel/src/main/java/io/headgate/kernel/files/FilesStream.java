package io.headgate.kernel.files;

import io.headgate.kernel.CodedFailure;
import io.headgate.kernel.gate.Partitioned;
import io.headgate.kernel.gate.Presents;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Reads an embedded topic in batches of bounded bytes; a batch may begin and end within a file, even within a line. */
final class FilesStream
    implements MicroBatchStream, SupportsAdmissionControl, ReportsSourceMetrics, Presents, Partitioned {
  /** Looking for new files costs a listing; as-fast-as-possible triggers would otherwise list without pause. */
  private static final long LOOK_EVERY_NANOS = 50_000_000L;

  private final Path root;
  private final Ledger ledger;
  private final String start;
  private final long maxBytes;
  private final int splits;
  private final long maxRecord;
  private long looked;

  FilesStream(CaseInsensitiveStringMap options) {
    root = Path.of(options.get("path"));
    ledger = new Ledger(root);
    start = options.getOrDefault("start", "earliest");
    maxBytes = options.getLong("max.bytes", 64L << 20);
    splits = options.getInt("splits", 1);
    maxRecord = options.getLong("max.record", 1L << 20);
  }

  private void look() {
    long now = System.nanoTime();
    if (ledger.topic() != null && now - looked < LOOK_EVERY_NANOS) return;
    try {
      ledger.refresh();
    } catch (IOException e) {
      throw new UncheckedIOException("cannot list the files of topic folder " + root, e);
    }
    looked = now;
  }

  @Override public Offset initialOffset() {
    look();
    return switch (start) {
      case "earliest" -> new FilesOffset(ledger.topic(), 0, 0);
      case "latest" -> end();
      default -> FilesOffset.parse(start);
    };
  }

  private FilesOffset end() {
    return new FilesOffset(ledger.topic(), ledger.entries().size(), 0);
  }

  @Override public Offset reportLatestOffset() {
    look();
    return end();
  }

  /** Returns a position as it is in the topic of today: a topic that was made anew is read from its start. */
  @Override public FilesOffset present(Offset position) {
    FilesOffset at = (FilesOffset) position;
    return at.topic.equals(ledger.topic()) ? at : new FilesOffset(ledger.topic(), 0, 0);
  }

  @Override public Offset latestOffset(Offset from, ReadLimit limit) {
    look();
    FilesOffset at = present(from);
    long wanted = position(at) + maxBytes;
    List<Ledger.Entry> entries = ledger.entries();
    // Files without a byte leave the end where it is, but they have a number, and it must be reached.
    if (position(at) >= ledger.end()) return at.file == entries.size() ? from : end();
    if (wanted >= ledger.end()) return end();
    int file = (int) at.file;
    while (entries.get(file).end() <= wanted) file++;
    return new FilesOffset(ledger.topic(), file, wanted - entries.get(file).start());
  }

  /** A topic read as one long file is one partition. */
  @Override public Map<String, Progress> partitions(Offset from, Offset to) {
    FilesOffset end = (FilesOffset) to;
    if (!end.topic.equals(ledger.topic())) return Map.of();
    boolean left = position(end) < ledger.end();
    return Map.of(root.getFileName().toString(), Progress.of(
        ((FilesOffset) from).topic.equals(end.topic), !from.equals(to), left, ledger.end() == 0));
  }

  /** Returns a place as bytes from the topic's start. */
  private long position(FilesOffset at) {
    List<Ledger.Entry> entries = ledger.entries();
    if (at.file > entries.size())
      throw new CodedFailure(CodedFailure.LEDGER_BROKEN, "position " + at.json() + " is beyond the ledger of " + root
          + ", which has " + entries.size() + " files: the ledger was truncated or replaced");
    return at.file == entries.size() ? ledger.end() : entries.get((int) at.file).start() + at.at;
  }

  @Override public Offset latestOffset() {
    throw new UnsupportedOperationException("the position depends on where reading starts");
  }

  @Override public InputPartition[] planInputPartitions(Offset from, Offset to) {
    // Nothing to read is nothing lost, also where the topic was made anew since.
    if (from.equals(to)) return new InputPartition[0];
    FilesOffset end = (FilesOffset) to;
    if (ledger.topic() == null || end.file > ledger.entries().size()) look();
    if (!end.topic.equals(ledger.topic())) {
      // A batch that was logged before the topic was made anew cannot be read again.
      throw new IllegalStateException("DATA_LOST: the records of a batch that must be repeated were deleted: topic folder " + root
          + " was recreated before the batch was finished");
    }
    FilesOffset begin = present(from);
    long a = position(begin);
    long b = position(end);
    if (b <= a) return new InputPartition[0];
    int n = (int) Math.max(1, Math.min(splits, b - a));
    var out = new ArrayList<InputPartition>(n);
    for (int i = 0; i < n; i++) out.add(split((int) begin.file, a + (b - a) * i / n, a + (b - a) * (i + 1) / n));
    return out.toArray(InputPartition[]::new);
  }

  private FilesSplit split(int first, long a, long b) {
    var ranges = new ArrayList<FilesSplit.Range>();
    for (int i = first; i < ledger.entries().size() && ledger.entries().get(i).start() < b; i++) {
      Ledger.Entry e = ledger.entries().get(i);
      long from = Math.max(a, e.start());
      long to = Math.min(b, e.end());
      if (from >= to) continue;
      ranges.add(new FilesSplit.Range(
          root.resolve(e.path()).toString(), (int) e.number(), e.start(), e.size(), from - e.start(), to - e.start(), e.seen()));
    }
    int lane = ledger.topic().hashCode() & Integer.MAX_VALUE;
    return new FilesSplit(ranges, root.getFileName().toString(), lane, maxRecord);
  }

  @Override public PartitionReaderFactory createReaderFactory() {
    return FilesReader::new;
  }

  @Override public Offset deserializeOffset(String json) {
    return FilesOffset.parse(json);
  }

  @Override public void commit(Offset end) {}

  @Override public void stop() {}

  @Override public Map<String, String> metrics(Optional<Offset> consumed) {
    if (consumed.isEmpty() || ledger.topic() == null) return Map.of();
    long at = position(present(FilesOffset.parse(consumed.get().json())));
    return Map.of("lagBytes", Long.toString(ledger.end() - at), "readBytes", Long.toString(at));
  }
}
