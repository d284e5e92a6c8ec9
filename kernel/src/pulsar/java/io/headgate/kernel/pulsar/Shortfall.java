package io.headgate.kernel.pulsar;

import io.headgate.kernel.source.Finding;
import java.net.http.HttpHeaders;
import java.util.Optional;
import org.apache.pulsar.client.api.PulsarClientException;

/**
 * What a task does where Pulsar gives less than was planned: waits, gives up, or goes on without what is gone.
 *
 * <p>The driver looks for losses before it plans a batch. This is for what is lost after that, and for entries that bring no
 * message: chunks but the last, marks of transactions, and what was aborted.
 */
final class Shortfall {
  private enum Entry { SILENT, EXPECTED, HIDDEN, LAST_CHUNK, GONE }

  private static final long PATIENCE_NANOS = ClientOptions.PATIENCE_MS * 1_000_000L;
  private static final long LOOK_NANOS = 1_000_000_000L;
  /** How long the last chunk of a message is waited for; it does not come where the first ones are gone. */
  private static final long CHUNK_NANOS = 5_000_000_000L;
  private static final String CHUNK = "X-Pulsar-chunk-id";
  private static final String CHUNKS = "X-Pulsar-num-chunks-from-msg";
  private static final String MARKER = "X-Pulsar-marker-type";
  private static final String ABORTED = "X-Pulsar-txn-aborted";
  private static final String UNCOMMITTED = "X-Pulsar-txn-uncommitted";

  private final PulsarReader.Settings settings;
  private long movedAt = System.nanoTime();
  private long lookedAt;

  Shortfall(PulsarReader.Settings settings) {
    this.settings = settings;
  }

  /** Takes note that messages came. */
  void moved() {
    movedAt = System.nanoTime();
  }

  /** Returns what a client threw as what it means. */
  RuntimeException failure(Exception e) {
    return PulsarFailure.of(e, settings.client().service(), "read for source '" + settings.source() + "'");
  }

  /** Called where nothing came for a while: passes entries that bring nothing, and ends the wait after a minute. */
  void wait(RangeReader reader) throws PulsarClientException {
    long now = System.nanoTime();
    if (now - lookedAt >= LOOK_NANOS) {
      walk(reader);
      lookedAt = System.nanoTime();
    }
    if (!reader.isDone() && System.nanoTime() - movedAt > PATIENCE_NANOS)
      throw new PulsarFailure(PulsarFailure.UNREACHABLE, "cannot read for source '" + settings.source() + "': for "
          + ClientOptions.PATIENCE_MS / 1000 + " s no broker of " + settings.client().service() + " gave message "
          + reader.next() + " of " + reader.range().plain().local());
  }

  private void walk(RangeReader reader) throws PulsarClientException {
    while (!reader.isDone()) {
      Entry entry = look(reader.range().plain(), reader.next());
      if (entry == Entry.EXPECTED) return;
      if (entry == Entry.HIDDEN) {
        // However long a transaction before it is open: the broker ends it after its timeout.
        moved();
        return;
      }
      if (entry == Entry.LAST_CHUNK && (!reader.isConnected() || System.nanoTime() - movedAt < CHUNK_NANOS)) return;
      if (entry == Entry.LAST_CHUNK && reader.canGoBack()) {
        reader.goBack();
        moved();
        return;
      }
      if (entry == Entry.LAST_CHUNK) lose(reader, "the first chunks of message " + reader.next() + " were deleted");
      if (entry == Entry.GONE) {
        lose(reader, "the entries of ledger " + reader.next().ledger() + " from " + reader.next() + " on were deleted");
        reader.giveUp();
      } else {
        reader.pass();
      }
      moved();
    }
  }

  private Entry look(PulsarTopic plain, Place at) {
    String path = "persistent/" + plain.path() + "/ledger/" + at.ledger() + "/entry/" + at.entry();
    Optional<HttpHeaders> found = AdminApi.shared(settings.client()).findHeaders(path);
    if (found.isEmpty()) return Entry.GONE;
    HttpHeaders headers = found.get();
    if (headers.firstValue(UNCOMMITTED).orElse("").equals("true")) return Entry.HIDDEN;
    if (headers.firstValue(MARKER).isPresent() || headers.firstValue(ABORTED).orElse("").equals("true")) return Entry.SILENT;
    long chunks = headers.firstValueAsLong(CHUNKS).orElse(1);
    if (chunks <= 1) return Entry.EXPECTED;
    return headers.firstValueAsLong(CHUNK).orElse(0) + 1 < chunks ? Entry.SILENT : Entry.LAST_CHUNK;
  }

  /**
   * Called where a message came before those of earlier entries; returns whether these bring none, or are gone.
   *
   * <p>Where one of them should have come, the reader has to go back for it. A plain topic has no such entries.
   *
   * @param to behind the last of them, in the ledger that is read
   */
  boolean explains(RangeReader reader, long to) {
    Place from = reader.next();
    PulsarTopic plain = reader.range().plain();
    boolean there = AdminApi.shared(settings.client()).find("persistent/" + plain.path() + "/internalStats")
        .map(stats -> Ledgers.parse(stats, Place.NO_LIMIT)).orElse(Ledgers.NONE).has(from.ledger());
    if (!there) {
      lose(reader, "the entries of ledger " + from.ledger() + " from " + from + " on were deleted");
      return true;
    }
    for (Place at = from; at.entry() < to; at = at.next()) {
      Entry entry = look(plain, at);
      if (entry == Entry.SILENT) continue;
      if (entry != Entry.GONE && reader.canGoBack()) return false;
      lose(reader, "message " + at + " or a part of it was deleted");
    }
    return true;
  }

  private void lose(RangeReader reader, String what) {
    PulsarSplit.Range range = reader.range();
    String message = "topic '" + range.topic().local() + "' partition " + range.partition() + ": " + what
        + ", and a batch reads from " + range.from() + " to " + range.to();
    if (settings.failOnLoss()) throw new PulsarFailure(PulsarFailure.DATA_LOST, message);
    settings.findings().add(new Finding(Finding.Kind.DATA_LOST, range.topic().local(), message));
  }
}
