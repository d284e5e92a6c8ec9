package io.headgate.kernel.kafka;

import io.headgate.kernel.kafka.RangeConsumer.Track;
import io.headgate.kernel.source.Finding;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/**
 * What a task does where Kafka gives less than was planned: waits, gives up, or goes on without what is gone.
 *
 * <p>The driver looks for losses before it plans a batch. This is for what is lost after that, and for a batch that is read
 * again when its records are no more.
 */
final class Shortfall {
  private static final long PATIENCE_NANOS = ClientOptions.PATIENCE_MS * 1_000_000L;
  private static final long LOOK_NANOS = 5_000_000_000L;
  private static final Duration CALL = Duration.ofSeconds(10);

  private final KafkaReader.Settings settings;
  private long movedAt = System.nanoTime();
  private long lookedAt = movedAt;

  Shortfall(KafkaReader.Settings settings) {
    this.settings = settings;
  }

  /** Takes note that records came. */
  void moved() {
    movedAt = System.nanoTime();
  }

  /** Returns what a client threw as what it means. */
  RuntimeException failure(RuntimeException e) {
    return KafkaFailure.of(e, settings.client().servers(), "read for source '" + settings.source() + "'");
  }

  /** Called where nothing came for a while: finds out why, and ends the wait after a minute. */
  void wait(RangeConsumer consumer) {
    long now = System.nanoTime();
    if (now - lookedAt >= LOOK_NANOS && now - movedAt >= LOOK_NANOS) {
      lookedAt = now;
      look(consumer);
    }
    if (System.nanoTime() - movedAt > PATIENCE_NANOS)
      throw new KafkaFailure(KafkaFailure.UNREACHABLE, "cannot read for source '" + settings.source() + "': for "
          + ClientOptions.PATIENCE_MS / 1000 + " s no broker of " + settings.client().servers() + " gave any record of "
          + consumer.open().get(0).place);
  }

  /** Goes on after what a client threw, if that is a loss that may be passed over; throws otherwise. */
  void mend(RuntimeException e, RangeConsumer consumer) {
    if (!(e instanceof OffsetOutOfRangeException out)) throw failure(e);
    Set<TopicPartition> which = out.partitions();
    try {
      var client = consumer.client();
      Map<TopicPartition, Long> begins = client.beginningOffsets(which, CALL);
      Map<TopicPartition, Long> ends = client.endOffsets(which, CALL);
      for (Track track : consumer.open())
        if (which.contains(track.place)) pass(track, consumer, begins.get(track.place), ends.get(track.place));
    } catch (RuntimeException again) {
      throw failure(again);
    }
  }

  private void look(RangeConsumer consumer) {
    for (Track track : consumer.open()) {
      Consumer<?, ?> client = consumer.client();
      Set<TopicPartition> place = Set.of(track.place);
      try {
        if (client.partitionsFor(track.place.topic(), CALL).isEmpty()) throw new UnknownTopicOrPartitionException();
        long end = client.endOffsets(place, CALL).get(track.place);
        if (end < track.range.to()) pass(track, consumer, client.beginningOffsets(place, CALL).get(track.place), end);
      } catch (UnknownTopicOrPartitionException e) {
        lose(track, "the topic was deleted");
        consumer.giveUp(track);
      } catch (TimeoutException e) {
        // Out of reach for now; the wait has its own end.
      } catch (RuntimeException e) {
        throw failure(e);
      }
    }
  }

  private void pass(Track track, RangeConsumer consumer, long begin, long end) {
    long at = consumer.position(track);
    if (at < begin) {
      lose(track, "offsets " + at + " to " + (Math.min(begin, track.range.to()) - 1) + " were deleted, its log begins at " + begin);
      if (begin >= track.range.to()) consumer.giveUp(track);
      else consumer.jump(track, begin);
    } else if (end < track.range.to()) {
      lose(track, "its log was truncated: it ends at " + end);
      consumer.giveUp(track);
    } else {
      consumer.jump(track, at);
    }
  }

  private void lose(Track track, String what) {
    String message = "topic '" + track.place.topic() + "' partition " + track.place.partition() + ": " + what
        + ", and a batch reads from " + track.range.from() + " to " + track.range.to();
    if (settings.failOnLoss()) throw new KafkaFailure(KafkaFailure.DATA_LOST, message);
    settings.findings().add(new Finding(Finding.Kind.DATA_LOST, track.place.topic(), message));
  }
}
