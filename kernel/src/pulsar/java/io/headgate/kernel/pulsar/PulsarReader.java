package io.headgate.kernel.pulsar;

import io.headgate.kernel.pulsar.PulsarSplit.Range;
import io.headgate.kernel.rows.RawHeaders;
import io.headgate.kernel.rows.RawRecord;
import io.headgate.kernel.source.TaskFindings;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.Map;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;

/** Reads one task's ranges, one behind the other, message by message. */
final class PulsarReader implements PartitionReader<InternalRow> {
  /**
   * What every task is told.
   *
   * @param reader what readers are called
   * @param queue how many messages a reader fetches ahead
   */
  record Settings(
      ClientOptions client, String run, String source, String reader, long maxRecord, boolean meta, boolean failOnLoss, int queue,
      Volume.Counters counters, TaskFindings findings) implements PartitionReaderFactory, Serializable {
    @Override public PartitionReader<InternalRow> createReader(InputPartition split) {
      return new PulsarReader(this, (PulsarSplit) split);
    }
  }

  private final Settings settings;
  private final Iterator<Range> ranges;
  private final Shortfall shortfall;
  private final GenericInternalRow row = new GenericInternalRow(new Object[1]);
  private RangeReader reader;
  private byte[] topic;
  private Lane lane;
  private long records;
  private long entries;
  private long bytes;
  private long ledgerSeen = -1;
  private long entrySeen = -1;

  private PulsarReader(Settings settings, PulsarSplit split) {
    this.settings = settings;
    ranges = split.ranges().iterator();
    shortfall = new Shortfall(settings);
  }

  @Override public boolean next() {
    try {
      for (;;) {
        Message<byte[]> message = reader == null ? null : reader.read(shortfall);
        if (message != null) {
          shortfall.moved();
          row.update(0, pack(message));
          return true;
        }
        if (reader != null && !reader.isDone()) shortfall.wait(reader);
        else if (!advance()) return false;
      }
    } catch (PulsarClientException | RuntimeException e) {
      throw shortfall.failure(e);
    }
  }

  private boolean advance() throws PulsarClientException {
    if (reader != null) ReaderPool.give(key(reader.range()), reader);
    reader = null;
    if (!ranges.hasNext()) return false;
    Range range = ranges.next();
    reader = ReaderPool.take(key(range));
    reader.begin(range, settings.queue);
    topic = range.topic().local().getBytes(StandardCharsets.UTF_8);
    lane = new Lane(range.topic(), range.partition());
    shortfall.moved();
    return true;
  }

  private ReaderPool.Key key(Range range) {
    return new ReaderPool.Key(settings.client, settings.run, settings.source, settings.reader, range.plain());
  }

  private byte[] pack(Message<byte[]> message) {
    MessageIdAdv id = (MessageIdAdv) message.getMessageId();
    byte[] value = message.getData();
    int size = value == null ? 0 : value.length;
    byte[] name = (size == 0 || settings.meta) && message.hasKey() ? message.getKeyBytes() : null;
    byte[] headers = settings.meta ? headers(message.getProperties()) : null;
    int kept = size > settings.maxRecord ? Math.min(size, RawRecord.KEPT) : size;
    long sequence = Lane.sequence(id);
    long eventTime = message.getEventTime() == 0 ? RawRecord.NO_TIME : message.getEventTime();
    byte[] out = RawRecord.make(
        topic, lane.partition(), sequence, message.getPublishTime(), eventTime, lane.of(id), sequence, size,
        name == null ? RawRecord.NONE : name.length, headers == null ? RawRecord.NONE : headers.length,
        size == 0 ? RawRecord.NONE : kept);
    if (name != null) System.arraycopy(name, 0, out, RawRecord.keyStart(out), name.length);
    if (headers != null) System.arraycopy(headers, 0, out, RawRecord.headersStart(out), headers.length);
    if (size > 0) System.arraycopy(value, 0, out, out.length - kept, kept);
    count(id, size);
    return out;
  }

  private void count(MessageIdAdv id, int size) {
    records++;
    bytes += size;
    if (id.getEntryId() == entrySeen && id.getLedgerId() == ledgerSeen) return;
    entries++;
    entrySeen = id.getEntryId();
    ledgerSeen = id.getLedgerId();
  }

  private static byte[] headers(Map<String, String> properties) {
    if (properties.isEmpty()) return null;
    byte[][] texts = new byte[2 * properties.size()][];
    int at = 0;
    int length = 0;
    for (var each : properties.entrySet()) {
      texts[at] = each.getKey().getBytes(StandardCharsets.UTF_8);
      texts[at + 1] = each.getValue().getBytes(StandardCharsets.UTF_8);
      length += RawHeaders.size(texts[at], texts[at + 1]);
      at += 2;
    }
    byte[] out = new byte[length];
    int put = 0;
    for (int i = 0; i < texts.length; i += 2) put = RawHeaders.put(out, put, texts[i], texts[i + 1]);
    return out;
  }

  @Override public InternalRow get() {
    return row;
  }

  /** A reader goes back to the pool only from the end of its range: elsewhere nobody knows where it stands. */
  @Override public void close() {
    settings.counters.records().add(records);
    settings.counters.entries().add(entries);
    settings.counters.bytes().add(bytes);
    records = entries = bytes = 0;
    if (reader != null) reader.close();
    reader = null;
  }
}
