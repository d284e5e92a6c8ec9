package io.headgate.kernel.pulsar;

import io.headgate.kernel.pulsar.PulsarSplit.Range;
import io.headgate.kernel.source.IdlePool;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.ReaderBuilder;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.impl.MessageIdImpl;

/**
 * A reader of one partition that reads ranges of entries, and goes on where the last one ended without a new look for it.
 *
 * <p>Serves one thread at a time. A range ends with the last message of its last entry, or with the first one behind it: some
 * entries bring no message, such as the first chunks of a large one.
 */
final class RangeReader implements IdlePool.Client {
  private static final int WAIT_MS = 250;
  /** How much earlier a reader begins again that left something out; and then, where its ledger does. */
  private static final int BACK = 1_024;
  private static final int TRIES = 2;
  private static final Map<String, Object> DEFAULTS = Map.of(
      // A large message is dropped in silence where its chunks are: never for their number, and only after long.
      "maxPendingChunkedMessage", 0,
      "expireTimeOfIncompleteChunkedMessageMillis", TimeUnit.HOURS.toMillis(1));

  private final ClientOptions client;
  private final PulsarTopic plain;
  private final String name;
  private Reader<byte[]> reader;
  /** Where the range ended that was read last; null where nobody knows. */
  private Place stands;
  private Range range;
  /** How many messages the reader fetches ahead, and how often it went back in this range. */
  private int queue;
  private int tries;
  /** Which run of the range is read, and which entry of it comes next. */
  private int at;
  private long entry;
  /** The place in a batch of messages of the one handed on last, while more of it are to come. */
  private int index;
  /** A message that lies behind the range. */
  private Message<byte[]> ahead;

  /** @param name what Pulsar's tools call it */
  RangeReader(ClientOptions client, PulsarTopic plain, String name) {
    this.client = client;
    this.plain = plain;
    this.name = name;
  }

  /**
   * Sets out to read a range.
   *
   * @param queue how many messages a new reader fetches ahead
   */
  void begin(Range wanted, int queue) throws PulsarClientException {
    range = wanted;
    tries = 0;
    enter(0);
    boolean fits = queue <= 4 * this.queue && this.queue <= 4 * queue;
    this.queue = fits ? this.queue : queue;
    if (reader == null || !fits || !wanted.from().equals(stands)) open(wanted.open());
    stands = null;
  }

  boolean isConnected() {
    return reader != null && reader.isConnected();
  }

  boolean canGoBack() {
    return tries < TRIES;
  }

  /**
   * Begins to read again, some way before the entry that comes next.
   *
   * <p>A message in chunks is whole only for a reader that saw the first of them, and saw it on the same connection.
   */
  void goBack() throws PulsarClientException {
    Place at = next();
    tries++;
    open(new Place(at.ledger(), tries < TRIES ? Math.max(0, at.entry() - BACK) : 0));
  }

  private void open(Place first) throws PulsarClientException {
    close();
    var settings = new HashMap<>(DEFAULTS);
    settings.put("receiverQueueSize", queue);
    settings.put("readerName", name);
    // Two tasks may read one partition at a time, and Pulsar accepts a reader's subscription once: it adds a suffix of its own.
    settings.put("subscriptionRolePrefix", name);
    settings.putAll(client.reader());
    ReaderBuilder<byte[]> builder = Clients.of(client).newReader(Schema.BYTES).loadConf(settings);
    reader = builder.topic(plain.full()).startMessageId(new MessageIdImpl(first.ledger(), first.entry() - 1, -1)).create();
  }

  private void enter(int run) {
    at = run;
    entry = isDone() ? 0 : range.runs().get(run).from();
    index = -1;
    if (isDone()) stands = range.to();
  }

  /** Returns whether the range is read. */
  boolean isDone() {
    return at == range.runs().size();
  }

  /** Returns the entry that comes next. */
  Place next() {
    return new Place(range.runs().get(at).ledger(), entry);
  }

  Range range() {
    return range;
  }

  /**
   * Returns the next message of the range; null where the range is read, or where nothing came for a while.
   *
   * @param shortfall told of runs that are passed over before their ends
   */
  Message<byte[]> read(Shortfall shortfall) throws PulsarClientException {
    while (!isDone()) {
      Message<byte[]> message = ahead != null ? ahead : reader.readNext(WAIT_MS, TimeUnit.MILLISECONDS);
      ahead = null;
      if (message == null) return null;
      MessageIdAdv id = (MessageIdAdv) message.getMessageId();
      boolean whole = true;
      while (whole && !isDone() && isBehind(id)) {
        whole = shortfall.explains(this, range.runs().get(at).to());
        if (whole) enter(at + 1);
      }
      if (whole && !isDone() && skips(id)) whole = shortfall.explains(this, id.getEntryId());
      if (!whole) goBack();
      else if (isDone()) ahead = message;
      else if (take(id)) return message;
    }
    return null;
  }

  private boolean isBehind(MessageIdAdv id) {
    Run run = range.runs().get(at);
    return id.getLedgerId() > run.ledger() || id.getLedgerId() == run.ledger() && id.getEntryId() >= run.to();
  }

  /** Returns whether entries between the one that comes next and a message have brought nothing. */
  private boolean skips(MessageIdAdv id) {
    return id.getLedgerId() == range.runs().get(at).ledger() && id.getEntryId() > entry;
  }

  /** Moves on to a message; returns whether it is one of the range that was not handed on before. */
  private boolean take(MessageIdAdv id) {
    Run run = range.runs().get(at);
    if (id.getLedgerId() < run.ledger() || id.getEntryId() < entry) return false;
    int place = id.getBatchIndex();
    // After a connection was lost, a batch may come once more.
    if (id.getEntryId() == entry && place >= 0 && place <= index) return false;
    entry = id.getEntryId();
    index = place;
    if (place < 0 || place + 1 >= id.getBatchSize()) pass();
    return true;
  }

  /** Goes on to the next entry. */
  void pass() {
    entry++;
    index = -1;
    if (entry >= range.runs().get(at).to()) enter(at + 1);
  }

  /** Leaves the rest of a ledger unread. */
  void giveUp() {
    enter(at + 1);
  }

  /** Does not wait for the broker. */
  @Override public void close() {
    stands = null;
    ahead = null;
    if (reader != null) reader.closeAsync();
    reader = null;
  }
}
