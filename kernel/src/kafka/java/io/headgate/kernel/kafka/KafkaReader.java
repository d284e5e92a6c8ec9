package io.headgate.kernel.kafka;

import io.headgate.kernel.kafka.RangeConsumer.Track;
import io.headgate.kernel.rows.RawHeaders;
import io.headgate.kernel.rows.RawRecord;
import io.headgate.kernel.source.TaskFindings;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;

/** Reads one task's ranges, record by record, each packed once from where the consumer holds it. */
final class KafkaReader implements PartitionReader<InternalRow> {
  /** What every task is told. */
  record Settings(
      ClientOptions client, String isolation, String run, String source, long maxRecord, boolean meta, boolean failOnLoss,
      TaskFindings findings)
      implements PartitionReaderFactory, Serializable {
    @Override public PartitionReader<InternalRow> createReader(InputPartition split) {
      return new KafkaReader(this, (KafkaSplit) split);
    }
  }

  private final Settings settings;
  private final ConsumerPool.Key key;
  private final GenericInternalRow row = new GenericInternalRow(new Object[1]);
  private final Shortfall shortfall;
  private RangeConsumer consumer;
  private Track track;
  private byte[] topic;
  private int lane;
  private boolean finished;

  private KafkaReader(Settings settings, KafkaSplit split) {
    this.settings = settings;
    key = new ConsumerPool.Key(settings.client, settings.isolation, settings.run, settings.source, split.group());
    shortfall = new Shortfall(settings);
    consumer = ConsumerPool.take(key);
    try {
      consumer.begin(split.ranges());
    } catch (RuntimeException e) {
      close();
      throw shortfall.failure(e);
    }
  }

  @Override public boolean next() {
    if ((track == null || !track.hasNext()) && !advance()) return false;
    row.update(0, pack(track.next()));
    return true;
  }

  private boolean advance() {
    Track found = null;
    while (found == null) {
      try {
        found = consumer.advance();
        if (found == null) {
          finished = true;
          return false;
        }
        if (found == RangeConsumer.NOTHING) {
          shortfall.wait(consumer);
          found = null;
        } else {
          shortfall.moved();
        }
      } catch (RuntimeException e) {
        shortfall.mend(e, consumer);
      }
    }
    if (found != track) {
      topic = found.place.topic().getBytes(StandardCharsets.UTF_8);
      lane = found.range.lane();
    }
    track = found;
    return true;
  }

  private byte[] pack(ConsumerRecord<ByteBuffer, ByteBuffer> record) {
    ByteBuffer value = record.value();
    int size = value == null ? 0 : value.remaining();
    boolean whole = value == null || settings.meta;
    ByteBuffer name = whole ? record.key() : null;
    Headers headers = settings.meta ? record.headers() : null;
    int headersLength = headers == null ? RawRecord.NONE : length(headers);
    int kept = size > settings.maxRecord ? Math.min(size, RawRecord.KEPT) : size;
    byte[] out = RawRecord.make(
        topic, record.partition(), record.offset(), record.timestamp(), RawRecord.NO_TIME, lane, record.offset(), size,
        name == null ? RawRecord.NONE : name.remaining(), headersLength, value == null ? RawRecord.NONE : kept);
    if (name != null) name.get(name.position(), out, RawRecord.keyStart(out), name.remaining());
    if (headersLength > 0) put(headers, out);
    if (value != null) value.get(value.position(), out, out.length - kept, kept);
    return out;
  }

  private static int length(Headers headers) {
    int sum = 0;
    for (Header each : headers) sum += RawHeaders.size(each.key().getBytes(StandardCharsets.UTF_8), each.value());
    return sum == 0 ? RawRecord.NONE : sum;
  }

  private static void put(Headers headers, byte[] out) {
    int at = RawRecord.headersStart(out);
    for (Header each : headers) at = RawHeaders.put(out, at, each.key().getBytes(StandardCharsets.UTF_8), each.value());
  }

  @Override public InternalRow get() {
    return row;
  }

  /** A consumer goes back to the pool only from the end of its ranges: elsewhere nobody knows where it stands. */
  @Override public void close() {
    if (consumer == null) return;
    RangeConsumer mine = consumer;
    consumer = null;
    if (finished) ConsumerPool.give(key, mine);
    else mine.close();
  }
}
