package io.headgate.kernel.rolling;

import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.sink.LogWriter;
import io.headgate.kernel.testing.CrashPoint;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * Stages the rows of one task and epoch.
 *
 * <p>A file that exists is never replaced: a replay has the same rows, perhaps in another order, and discards its own.
 */
final class FolderWriter implements LogWriter {
  private static final byte[] NO_PATH = {};

  private final Journal journal;
  private final List<Integer> outputs;
  private final int task;
  private final long epoch;
  private final String name;
  /** Null where the rows are staged already, or are given up. */
  private StagedWriter writer;
  private Staged report;

  FolderWriter(Journal journal, Map<Integer, Sheet> sheets, int task, long epoch) throws IOException {
    this.journal = journal;
    this.task = task;
    this.epoch = epoch;
    outputs = List.copyOf(sheets.keySet());
    name = journal.stagedName(Staged.name(task, epoch));
    if (journal.place.exists(name)) return;
    writer = new StagedWriter(journal.place.make(name, journal.making()), new ArrayList<>(sheets.values()));
  }

  @Override public void write(int output, byte[] envelope) {
    if (writer == null) return;
    try {
      byte[] path = Envelope.segments(envelope) > 1 ? segment(envelope, 1) : NO_PATH;
      writer.row(outputs.indexOf(output), path, envelope, Envelope.start(envelope, 0), Envelope.length(envelope, 0));
    } catch (IOException e) {
      throw named(e);
    }
  }

  static byte[] row(byte[] envelope) {
    return segment(envelope, 0);
  }

  private static byte[] segment(byte[] envelope, int i) {
    int start = Envelope.start(envelope, i);
    return Arrays.copyOfRange(envelope, start, start + Envelope.length(envelope, i));
  }

  @Override public void commit() {
    try {
      // Another try of the same task may have been first: its rows are the same.
      if (writer != null) writer.publish();
      long size = writer == null ? journal.place.size(name) : writer.size();
      writer = null;
      report = new Staged(task, epoch, size, System.currentTimeMillis());
    } catch (IOException e) {
      throw named(e);
    }
    CrashPoint.at("folder-staged");
  }

  @Override public Serializable report() {
    return report;
  }

  /** The system says that a disk is full, and not for which file. */
  private UncheckedIOException named(IOException e) {
    return new UncheckedIOException(new IOException("cannot write " + journal.place.nameOf(name) + ": " + e.getMessage(), e));
  }

  @Override public void abort() {
    if (writer == null) return;
    StagedWriter given = writer;
    writer = null;
    try {
      given.discard();
    } catch (IOException e) {
      throw named(e);
    }
  }
}
