package io.headgate.kernel.sink;

import io.headgate.kernel.rows.Envelope;
import java.io.IOException;
import java.io.Serializable;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/**
 * Writes one task's rows of one epoch, each to the output it is addressed to.
 *
 * <p>A commit makes several things visible, one after the other. Each by itself is harmless to repeat, so a crash in between
 * is mended by the replay.
 */
final class FlowWriter implements DataWriter<InternalRow> {
  /**
   * @param counts rows by output
   * @param ages how old the records behind the rows were when the epoch began to be written
   * @param shown rows for the terminal, and the output each is of
   * @param reports what the writer of each cluster tells the driver; null for none
   */
  record Done(long[] counts, Ages ages, List<byte[]> shown, List<Integer> shownOf, Serializable[] reports)
      implements WriterCommitMessage {}

  /**
   * One try of one task at one epoch.
   *
   * @param began when the epoch began to be written, in epoch milliseconds by the driver's clock
   */
  record Turn(int partition, int partitions, long task, long epoch, long began) {}

  private final Outputs outputs;
  private final List<LogWriters> clusters;
  private final Turn turn;
  private final String name;
  private final long[] counts;
  private final Ages ages = new Ages();
  private final TopicFile[] files;
  private final LogWriter[] logs;
  private final List<byte[]> shown = new ArrayList<>();
  private final List<Integer> shownOf = new ArrayList<>();

  FlowWriter(Outputs outputs, String lineage, Logs logs, Turn turn) {
    this.outputs = outputs;
    this.turn = turn;
    clusters = logs.clusters();
    // The same rows come under the same name in every try: the name is what makes a replay harmless.
    name = String.format(Locale.ROOT, "%s-%010d-%05d", lineage, turn.epoch, turn.partition);
    counts = new long[outputs.all().size()];
    files = new TopicFile[counts.length];
    this.logs = new LogWriter[clusters.size()];
  }

  @Override public void write(InternalRow row) throws IOException {
    byte[] envelope = row.getBinary(1);
    byte kind = Envelope.kind(envelope);
    if (kind != Envelope.OUTPUT && kind != Envelope.COUNTED)
      throw new IllegalStateException(
          "a row of kind " + kind + " for address " + Envelope.address(envelope) + " reached the sink");
    int i = Envelope.address(envelope);
    counts[i]++;
    if (kind == Envelope.COUNTED) return;
    note(envelope);
    Outputs.Output output = outputs.all().get(i);
    int start = Envelope.start(envelope, 0);
    int length = Envelope.length(envelope, 0);
    if (counts[i] <= output.shown()) {
      shown.add(output.kind().writers() == null
          ? Arrays.copyOfRange(envelope, start, start + length) : clusters.get(output.cluster()).shown(i, envelope));
      shownOf.add(i);
    }
    if (output.kind() == Outputs.Kind.FILES) file(i, output).line(envelope, start, length);
    else if (output.kind().writers() != null) log(output.cluster()).write(i, envelope);
  }

  /** A row that no single record stands behind has no age, nor has a record without a timestamp. */
  private void note(byte[] envelope) {
    long timestamp = Envelope.timestamp(envelope);
    if (timestamp > 0 && Envelope.source(envelope) != Envelope.NO_SOURCE) ages.add(turn.began - timestamp);
  }

  private TopicFile file(int i, Outputs.Output output) throws IOException {
    if (files[i] == null) files[i] = new TopicFile(Path.of(output.path()), name, turn.partition, turn.task);
    return files[i];
  }

  private LogWriter log(int cluster) {
    if (logs[cluster] == null) logs[cluster] = clusters.get(cluster).open(turn.partition, turn.partitions, turn.epoch);
    return logs[cluster];
  }

  @Override public WriterCommitMessage commit() throws IOException {
    for (TopicFile file : files) if (file != null) file.publish();
    var reports = new Serializable[logs.length];
    for (int c = 0; c < logs.length; c++) {
      if (logs[c] == null) {
        clusters.get(c).passed(turn.partition, turn.epoch);
        continue;
      }
      logs[c].commit();
      reports[c] = logs[c].report();
    }
    return new Done(counts, ages, shown, shownOf, reports);
  }

  @Override public void abort() throws IOException {
    for (LogWriter log : logs) if (log != null) log.abort();
    for (TopicFile file : files) if (file != null) file.discard();
  }

  /** Also comes where neither a commit nor an abort did. */
  @Override public void close() {
    for (LogWriter log : logs) if (log != null) log.abort();
  }
}
