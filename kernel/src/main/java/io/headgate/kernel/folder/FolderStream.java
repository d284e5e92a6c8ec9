package io.headgate.kernel.folder;

import io.headgate.kernel.CodedFailure;
import io.headgate.kernel.folder.FolderListing.Found;
import io.headgate.kernel.gate.KeptFiles;
import io.headgate.kernel.gate.Partitioned;
import io.headgate.kernel.source.Finding;
import io.headgate.kernel.source.Judge;
import io.headgate.kernel.source.TaskFindings;
import io.headgate.kernel.testing.CrashPoint;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;

/** Reads a folder of data files in batches of bounded bytes, in the order of its ledger. */
final class FolderStream implements MicroBatchStream, SupportsAdmissionControl, ReportsSourceMetrics, Partitioned {
  /** A listing may take this part of the time at most. */
  private static final int PAUSES = 10;

  private final FolderOptions options;
  private final FolderLedger ledger;
  private final FolderCuts cuts;
  private final Judge judge;
  private final TaskFindings findings;
  private FolderListing listing;
  private long nextLook;
  /** The furthest position that a checkpoint has of this source; null where it has none. */
  private FolderOffset reached;
  private boolean looked;

  FolderStream(FolderOptions options, String checkpoint) {
    this.options = options;
    ledger = new FolderLedger(new KeptFiles(checkpoint), options.kept() == null ? null : new KeptFiles(options.kept()));
    cuts = new FolderCuts(ledger, options);
    judge = new Judge(options.run(), options.source(), options.failOnLoss());
    findings = TaskFindings.registered(SparkSession.active().sparkContext(), options.run(), options.source());
  }

  /** Lists the folder if it is time, and numbers what is new. */
  private void look() {
    long begun = System.nanoTime();
    if (looked && begun - nextLook < 0) return;
    List<Found> found;
    try {
      if (listing == null) listing = new FolderListing(options);
      found = listing.list();
    } catch (IOException e) {
      throw new UncheckedIOException("cannot list the files of folder " + options.folder(), e);
    }
    long youngest = System.currentTimeMillis() - options.minAgeMs();
    var ready = new ArrayList<Found>();
    var changed = new ArrayList<Finding>();
    for (Found each : found) {
      NumberedFile known = ledger.find(each.path());
      if (known == null) {
        if (options.minAgeMs() == 0 || each.modified() <= youngest) ready.add(each);
      } else if (known.size() != each.size() || (known.tag() != null && each.tag() != null && !known.tag().equals(each.tag()))) {
        changed.add(new Finding(Finding.Kind.DATA_LOST, options.topic(), "file " + options.path(known)
            + " was changed after it had been seen first: files must appear whole, and never change"));
      }
    }
    judge.judge(changed);
    // Files must not get the numbers of those that a ledger has lost.
    if (reached != null) checked(reached);
    if (ledger.number(ready)) CrashPoint.at("files-numbered");
    looked = true;
    long now = System.nanoTime();
    nextLook = now + Math.max(options.lookNanos(), PAUSES * (now - begun));
  }

  @Override public Offset initialOffset() {
    return switch (options.start()) {
      case "earliest" -> new FolderOffset(ledger.id(), 0, 0);
      case "latest" -> {
        look();
        yield end();
      }
      default -> checked(FolderOffset.parse(options.start()));
    };
  }

  private FolderOffset end() {
    return new FolderOffset(ledger.id(), ledger.files().size(), 0);
  }

  /** Refuses a position of another ledger, whose numbers mean other files. */
  private FolderOffset checked(FolderOffset at) {
    if (!at.ledger.equals(ledger.id()) || at.file > ledger.files().size())
      throw new CodedFailure(CodedFailure.LEDGER_BROKEN, "position " + at.json() + " is not in the ledger of folder "
          + options.folder() + ", which has " + ledger.files().size() + " files and id " + ledger.id());
    return at;
  }

  @Override public Offset reportLatestOffset() {
    look();
    return end();
  }

  @Override public Offset latestOffset(Offset from, ReadLimit limit) {
    return cuts.end(checked((FolderOffset) from));
  }

  /** A folder read as one long file is one partition. */
  @Override public Map<String, Progress> partitions(Offset from, Offset to) {
    boolean left = cuts.place((FolderOffset) to) < ledger.end();
    return Map.of(options.topic(), Progress.of(true, !from.equals(to), left, ledger.files().isEmpty()));
  }

  @Override public Offset latestOffset() {
    throw new UnsupportedOperationException("the position depends on where reading starts");
  }

  @Override public InputPartition[] planInputPartitions(Offset from, Offset to) {
    if (from.equals(to)) return new InputPartition[0];
    return cuts.splits(checked((FolderOffset) from), checked((FolderOffset) to)).toArray(InputPartition[]::new);
  }

  @Override public PartitionReaderFactory createReaderFactory() {
    return new FolderReader.Settings(options, findings);
  }

  @Override public Offset deserializeOffset(String json) {
    FolderOffset at = FolderOffset.parse(json);
    if (reached == null || at.reaches(reached)) reached = at;
    return at;
  }

  @Override public void commit(Offset end) {}

  @Override public void stop() {}

  @Override public Map<String, String> metrics(Optional<Offset> consumed) {
    if (consumed.isEmpty()) return Map.of();
    FolderOffset at = FolderOffset.parse(consumed.get().json());
    long lag = 0;
    for (long i = at.file; i < ledger.files().size(); i++) lag += ledger.files().get((int) i).size();
    return Map.of("lagBytes", Long.toString(Math.max(0, lag - at.at)), "readFiles", Long.toString(at.file));
  }
}
