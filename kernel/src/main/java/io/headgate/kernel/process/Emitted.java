package io.headgate.kernel.process;

import io.headgate.kernel.functions.Ordinals;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.plan.Route;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.Header;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.unsafe.Platform;

/**
 * Sends rows that a process function emitted on their way, and makes dead letters of what it failed on; one serves one task.
 *
 * <p>A row of an event has the event's position, and all rows of one event or timer have different ordinals.
 */
final class Emitted {
  /** Kinds of times; the worker and state know them by these numbers. */
  static final int EVENT_TIME = 0;
  static final int PROCESSING_TIME = 1;
  static final int EXPIRY = 2;

  private static final long SEED = 42;

  private final ProcessSpec spec;
  private final SegmentedRow[] results;
  /** By the place of the input. */
  private final SegmentedRow[] arrived;
  private final Header header = new Header();
  private List<byte[]> events;
  private List<Timer> timers;
  private long now;
  private Integer bucket;
  private Route.Out out;
  /** How many rows were made of each event and timer. */
  private int[] ofEvents = {};
  private int[] ofTimers = {};

  /** A timer that has fired. */
  record Timer(int kind, long time, byte[] key) {}

  Emitted(ProcessSpec spec) {
    this.spec = spec;
    arrived = spec.inputs().stream().map(each -> new SegmentedRow(each.layout())).toArray(SegmentedRow[]::new);
    results = spec.outputs().stream().map(each -> new SegmentedRow(Layout.of(each.schema()))).toArray(SegmentedRow[]::new);
  }

  /** Begins an exchange with these events and timers. */
  void begin(List<byte[]> events, List<Timer> timers, long now, Integer bucket, Route.Out out) {
    this.events = events;
    this.timers = timers;
    this.now = now;
    this.bucket = bucket;
    this.out = out;
    ofEvents = new int[events.size()];
    ofTimers = new int[timers.size()];
  }

  /** @param origin an event's place in the exchange, or -1 less a timer's */
  void send(int output, int origin, UnsafeRow row) {
    head(origin);
    header.ordinal = ordinal(origin, origin >= 0 ? ofEvents[origin]++ : ofTimers[-1 - origin]++);
    results[output].set(row);
    spec.outputs().get(output).route().send(results[output], header, bucket, out);
  }

  private long ordinal(int origin, int place) {
    if (origin < 0 || !spec.shared()) return Ordinals.of(header.ordinal, place, spec.name());
    return Ordinals.ofSide(header.ordinal, spec.find(events.get(origin)), place, spec.name());
  }

  /** Makes a dead letter of an event or a timer. */
  void reject(int origin, String text) {
    head(origin);
    var why = new BadRecord(BadRecord.Reason.FUNCTION_FAILED, text);
    if (origin < 0) {
      spec.inputs().get(0).failing().rejectOf(timers.get(-1 - origin).key, why, null, header, bucket, out);
      return;
    }
    byte[] envelope = events.get(origin);
    int input = spec.find(envelope);
    arrived[input].read(envelope);
    spec.inputs().get(input).failing().rejectOf(Envelope.last(envelope), why, arrived[input], header, bucket, out);
  }

  private void head(int origin) {
    if (origin >= 0) {
      header.read(events.get(origin));
      return;
    }
    Timer timer = timers.get(-1 - origin);
    header.source = Envelope.NO_SOURCE;
    header.partition = timer.kind == EVENT_TIME ? 1 : 0;
    header.offset = timer.time;
    header.timestamp = now;
    header.eventTime = timer.time;
    header.lane = 0;
    header.flags = Envelope.ON_TIME;
    header.ordinal = 0;
    // Timers of many keys share all that stands above: this gives their rows an order that is the same in every replay.
    header.sequence = XXH64.hashUnsafeBytes(timer.key, Platform.BYTE_ARRAY_OFFSET, timer.key.length, SEED);
  }
}
