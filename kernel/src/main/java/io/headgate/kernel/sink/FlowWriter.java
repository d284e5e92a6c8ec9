package io.headgate.kernel.sink;

import io.headgate.kernel.rows.Envelope;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** Writes one task's rows of one epoch, each to the output it is addressed to. */
final class FlowWriter implements DataWriter<InternalRow> {
  /**
   * @param counts rows by output
   * @param shown rows for the terminal, and the output each is of
   */
  record Done(long[] counts, List<byte[]> shown, List<Integer> shownOf) implements WriterCommitMessage {}

  private final Outputs outputs;
  private final String name;
  private final int partition;
  private final long task;
  private final long[] counts;
  private final TopicFile[] files;
  private final List<byte[]> shown = new ArrayList<>();
  private final List<Integer> shownOf = new ArrayList<>();

  FlowWriter(Outputs outputs, String lineage, int partition, long task, long epoch) {
    this.outputs = outputs;
    this.partition = partition;
    this.task = task;
    // The same rows come under the same name in every try: the name is what makes a replay harmless.
    name = String.format("%s-%010d-%05d", lineage, epoch, partition);
    counts = new long[outputs.all().size()];
    files = new TopicFile[counts.length];
  }

  @Override public void write(InternalRow row) throws IOException {
    byte[] envelope = row.getBinary(1);
    byte kind = Envelope.kind(envelope);
    if (kind != Envelope.OUTPUT && kind != Envelope.COUNTED)
      throw new IllegalStateException("a row of kind " + kind + " for address " + Envelope.address(envelope) + " reached the sink");
    int i = Envelope.address(envelope);
    counts[i]++;
    if (kind == Envelope.COUNTED) return;
    Outputs.Output output = outputs.all().get(i);
    int start = Envelope.start(envelope, 0);
    int length = Envelope.length(envelope, 0);
    if (counts[i] <= output.shown()) {
      shown.add(Arrays.copyOfRange(envelope, start, start + length));
      shownOf.add(i);
    }
    if (output.kind() != Outputs.Kind.FILES) return;
    if (files[i] == null) files[i] = new TopicFile(Path.of(output.path()), name, partition, task);
    files[i].line(envelope, start, length);
  }

  @Override public WriterCommitMessage commit() throws IOException {
    for (TopicFile file : files) if (file != null) file.publish();
    return new Done(counts, shown, shownOf);
  }

  @Override public void abort() throws IOException {
    for (TopicFile file : files) if (file != null) file.discard();
  }

  @Override public void close() {}
}
