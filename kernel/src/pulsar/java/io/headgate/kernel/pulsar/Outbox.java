package io.headgate.kernel.pulsar;

import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.TypedMessageBuilder;

/**
 * What one task has sent and no broker has acknowledged; limits it, waits for it, and remembers what went wrong.
 *
 * <p>Clients send what waits again after they have reconnected, without end. So it is here that somebody gives up.
 */
final class Outbox {
  static final String TOO_LARGE = "RECORD_TOO_LARGE";

  /** Enough to keep brokers busy, and little beside the rows of the epoch themselves. */
  private static final long LIMIT_BYTES = 16 << 20;

  /** @param size that of the row */
  private record Failed(PulsarTopic place, int size, Throwable why) {}

  private final String service;
  private final long patienceNanos;
  private final Set<PulsarTopic> doubted = new HashSet<>();
  private long bytes;
  private long rows;
  private long heard = System.nanoTime();
  private Failed failed;

  Outbox(String service, long patienceNanos) {
    this.service = service;
    this.patienceNanos = patienceNanos;
  }

  /**
   * Sends a row, once there is room for it.
   *
   * @param id its number; {@link SequenceId#NONE} where it has none
   */
  void send(Outlet outlet, TypedMessageBuilder<byte[]> message, int size, long id) {
    enter(size);
    CompletableFuture<MessageId> sent = message.sendAsync();
    if (id != SequenceId.NONE && outlet.mayHave(id)) outlet.flush();
    sent.whenComplete((place, e) -> acknowledge(outlet, place, e, size, id));
  }

  private synchronized void enter(int size) {
    // The time runs while rows wait for brokers, not while brokers wait for rows.
    if (rows == 0) heard = System.nanoTime();
    while (failed == null && rows > 0 && bytes + size > LIMIT_BYTES) pause();
    if (failed != null) throw failure();
    rows++;
    bytes += size;
  }

  /** Hears what became of a row; on a thread of the client's, which may hold the producer. */
  private synchronized void acknowledge(Outlet outlet, MessageId place, Throwable e, int size, long id) {
    rows--;
    bytes -= size;
    heard = System.nanoTime();
    // The first one is the cause: what follows it fails because of it.
    if (e != null && failed == null) failed = new Failed(outlet.place(), size, e);
    if (e == null && id != SequenceId.NONE && !outlet.mayHave(id) && isDouble(place)) doubted.add(outlet.place());
    if (failed != null || rows == 0 || bytes <= LIMIT_BYTES / 2) notifyAll();
  }

  /** A broker acknowledges a double with no place in its topic. */
  private static boolean isDouble(MessageId id) {
    return id instanceof MessageIdAdv found && found.getLedgerId() < 0;
  }

  /** Waits until brokers have acknowledged all that was sent and flushed. */
  synchronized void await() {
    while (failed == null && rows > 0) pause();
    if (failed != null) throw failure();
  }

  /** Returns where rows were taken for doubles that nobody had sent before, and forgets about it. */
  synchronized Set<PulsarTopic> takeDoubted() {
    var out = Set.copyOf(doubted);
    doubted.clear();
    return out;
  }

  private void pause() {
    long left = patienceNanos - (System.nanoTime() - heard);
    if (left <= 0)
      throw new PulsarFailure(PulsarFailure.UNREACHABLE, "cannot write rows: " + rows + " of them wait for " + service
          + ", and none was acknowledged for " + patienceNanos / 1_000_000 + " ms");
    try {
      wait(Math.max(1, left / 1_000_000));
    } catch (InterruptedException e) {
      throw PulsarFailure.interrupted();
    }
  }

  private RuntimeException failure() {
    if (isTooLarge(failed.why))
      return new PulsarFailure(TOO_LARGE, "cannot write a record of " + failed.size + " bytes to " + failed.place + ": "
          + failed.why.getMessage(), failed.why);
    return PulsarFailure.of(failed.why, service, "write to " + failed.place);
  }

  private static boolean isTooLarge(Throwable e) {
    return e instanceof PulsarClientException.InvalidMessageException
        || e instanceof PulsarClientException.NotAllowedException
            && e.getMessage().contains("maximum message size");
  }
}
