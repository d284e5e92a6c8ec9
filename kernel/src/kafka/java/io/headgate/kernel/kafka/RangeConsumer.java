package io.headgate.kernel.kafka;

import io.headgate.kernel.kafka.KafkaSplit.Range;
import io.headgate.kernel.source.IdlePool;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.common.TopicPartition;

/**
 * A consumer that reads ranges of offsets, and keeps what it fetched behind their ends for the batch to come.
 *
 * <p>Serves one thread at a time. A range ends where the consumer's position has passed it: there need not be a record at its
 * last offsets, where transactions ended or compaction removed them.
 */
final class RangeConsumer implements IdlePool.Client {
  private static final Duration POLL = Duration.ofMillis(500);

  /** One partition: what was fetched of it, and how far it was handed on. */
  static final class Track {
    final TopicPartition place;
    Range range;
    /** The offset behind all that was handed on: where the next range begins if it goes on. */
    private long next = -1;
    private String id;
    private List<ConsumerRecord<ByteBuffer, ByteBuffer>> fetched = List.of();
    private int at;
    /** The place in {@code fetched} behind the last record of the range. */
    private int limit;

    private Track(TopicPartition place) {
      this.place = place;
    }

    boolean hasNext() {
      return at < limit;
    }

    ConsumerRecord<ByteBuffer, ByteBuffer> next() {
      return fetched.get(at++);
    }

    private boolean begin(Range wanted) {
      range = wanted;
      if (next == wanted.from() && wanted.id().equals(id)) {
        limit = within(at);
        return true;
      }
      id = wanted.id();
      jump(wanted.from());
      return false;
    }

    private void jump(long offset) {
      next = offset;
      take(List.of());
    }

    private void take(List<ConsumerRecord<ByteBuffer, ByteBuffer>> records) {
      fetched = records;
      at = 0;
      limit = within(0);
    }

    /** Returns the place of the first record behind the range, from a place on. */
    private int within(int from) {
      int low = from;
      int high = fetched.size();
      while (low < high) {
        int middle = (low + high) >>> 1;
        if (fetched.get(middle).offset() < range.to()) low = middle + 1;
        else high = middle;
      }
      return low;
    }
  }

  /** What {@link #advance} returns where Kafka gave nothing for a while. */
  static final Track NOTHING = new Track(new TopicPartition("", 0));

  private final Consumer<ByteBuffer, ByteBuffer> consumer;
  private final Map<TopicPartition, Track> tracks = new HashMap<>();
  private final List<Track> open = new ArrayList<>();

  RangeConsumer(ClientOptions client, String isolation) {
    consumer = client.openConsumer(Map.of("isolation.level", isolation));
  }

  /** Sets out to read ranges; one that goes on where the last one of its partition ended uses what was fetched. */
  void begin(List<Range> ranges) {
    open.clear();
    boolean grown = false;
    for (Range range : ranges) grown |= tracks.putIfAbsent(range.place(), new Track(range.place())) == null;
    if (grown) consumer.assign(tracks.keySet());
    consumer.pause(tracks.keySet());
    for (Range range : ranges) {
      Track track = tracks.get(range.place());
      if (!track.begin(range)) consumer.seek(track.place, range.from());
      open.add(track);
      // With records behind the range in hand, there is nothing to fetch.
      if (track.limit == track.fetched.size()) consumer.resume(Collections.singleton(track.place));
    }
  }

  /**
   * Returns a partition that has records of its range at hand, fetching if need be; {@link #NOTHING} where none came; null
   * once all ranges are read.
   */
  Track advance() {
    for (;;) {
      for (int i = open.size() - 1; i >= 0; i--) {
        Track track = open.get(i);
        if (track.hasNext()) return track;
        if (hasEnded(track)) end(i);
      }
      if (open.isEmpty()) return null;
      if (!poll()) return NOTHING;
    }
  }

  private boolean hasEnded(Track track) {
    return track.at < track.fetched.size() || consumer.position(track.place) >= track.range.to();
  }

  private void end(int i) {
    Track track = open.remove(i);
    track.next = track.range.to();
    consumer.pause(Collections.singleton(track.place));
  }

  /** Fetches for the ranges that are not read; each of them has nothing left in hand. Returns whether one moved. */
  private boolean poll() {
    ConsumerRecords<ByteBuffer, ByteBuffer> records = consumer.poll(POLL);
    for (Track track : open) track.take(records.records(track.place));
    return !records.nextOffsets().isEmpty();
  }

  /** Returns the partitions whose ranges are not read. */
  List<Track> open() {
    return List.copyOf(open);
  }

  long position(Track track) {
    return consumer.position(track.place);
  }

  /** Goes on with a partition at a later offset. */
  void jump(Track track, long offset) {
    track.jump(offset);
    consumer.seek(track.place, offset);
  }

  /** Leaves the rest of a range unread. */
  void giveUp(Track track) {
    jump(track, track.range.to());
    end(open.indexOf(track));
  }

  Consumer<ByteBuffer, ByteBuffer> client() {
    return consumer;
  }

  @Override public void close() {
    boolean interrupted = Thread.interrupted();
    try {
      consumer.close(CloseOptions.timeout(Duration.ZERO));
    } finally {
      if (interrupted) Thread.currentThread().interrupt();
    }
  }
}
