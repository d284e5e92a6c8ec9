package io.headgate.kernel.process;

import io.headgate.kernel.broadcast.BroadcastTable;
import io.headgate.kernel.functions.MessageBody;
import io.headgate.kernel.functions.MessageReader;
import io.headgate.kernel.functions.Worker;
import io.headgate.kernel.functions.WorkerPool;
import io.headgate.kernel.json.KeyValues;
import io.headgate.kernel.plan.Route;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.SegmentedRow;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.util.TaskCompletionListener;

/**
 * The exchanges of one task with its worker. Keys are added with what is due of them; once there is enough for one exchange, or
 * at {@link #finish}, the worker is called, and what it answers is applied.
 *
 * <p>The events of a key may be in several exchanges: each begins with the record that the one before left behind.
 */
final class ProcessCalls {
  /** An exchange has at most so many events and timers, and about so many bytes, unless a single row has more. */
  static final int MOST = 4096;
  private static final int MOST_BYTES = 4 << 20;

  private final ProcessSpec spec;
  private final WorkerPool.Key pool;
  private final KeyStore store;
  /** Null without one. */
  private final BroadcastTable broadcast;
  private final CallRows rows;
  private final KeyValues keyValues;
  private final Object[] keyColumns;
  private final GenericInternalRow keyRow;
  /** By the place of the input. */
  private final SegmentedRow[] arrived;
  private final Emitted emitted;
  private final MessageBody message;
  private final MessageBody fetched;
  private Worker worker;
  private boolean ended;

  // Of the present call of the operator.
  private long now;
  private long watermark;
  private long batch;
  private int phase;
  /** How many exchanges this call has had: the events of a key draw other random numbers in each. */
  private int exchanges;
  private Integer bucket;
  private Route.Out out;
  private Changes changes;

  // Of the present exchange.
  private final List<byte[]> keys = new ArrayList<>();
  private final List<byte[]> events = new ArrayList<>();
  private final List<Emitted.Timer> timers = new ArrayList<>();
  private final MessageBody textLengths;
  private final MessageBody texts;
  private final MessageBody eventCounts;
  private final MessageBody eventTimes;
  private final MessageBody inputs;
  private final MessageBody timerCounts;
  private final MessageBody timerKinds;
  private final MessageBody timerTimes;
  private final MessageBody cleanUps;
  private int keyEvents;
  private int keyTimers;
  private boolean keyCleanUp;
  private int count;
  private long size;
  /** The part of the size that is the last key with its record. */
  private long keySize;

  /** Takes what a function did to timers and clean-ups. */
  interface Changes {
    /** @param what a kind of {@link Emitted}, with {@link #REMOVE} added if the entry is removed */
    void change(byte[] key, int what, long time);
  }

  static final int REMOVE = 16;

  /** @param broadcast null if the function has no broadcast table */
  ProcessCalls(ProcessSpec spec, WorkerPool.Key pool, KeyStore store, BroadcastTable broadcast) {
    this.spec = spec;
    this.pool = pool;
    this.store = store;
    this.broadcast = broadcast;
    rows = new CallRows(spec);
    message = new MessageBody(spec.name());
    fetched = new MessageBody(spec.name());
    textLengths = new MessageBody(spec.name());
    texts = new MessageBody(spec.name());
    eventCounts = new MessageBody(spec.name());
    eventTimes = new MessageBody(spec.name());
    inputs = new MessageBody(spec.name());
    timerCounts = new MessageBody(spec.name());
    timerKinds = new MessageBody(spec.name());
    timerTimes = new MessageBody(spec.name());
    cleanUps = new MessageBody(spec.name());
    keyValues = new KeyValues(spec.key().stream().map(StructField::dataType).toList());
    keyColumns = new Object[spec.key().size()];
    keyRow = new GenericInternalRow(keyColumns);
    arrived = spec.inputs().stream().map(each -> new SegmentedRow(each.layout())).toArray(SegmentedRow[]::new);
    emitted = new Emitted(spec);
    TaskContext task = TaskContext.get();
    TaskCompletionListener end = done -> end(!done.isFailed() && !done.isInterrupted());
    // Spark does not close an operator whose task failed or was killed.
    if (task != null) task.addTaskCompletionListener(end);
  }

  /**
   * Begins a call of the operator.
   *
   * @param phase 0 for a batch's rows, 1 for its event timers
   */
  void enter(Integer bucket, long now, long watermark, long batch, int phase, Route.Out out, Changes changes) {
    this.bucket = bucket;
    this.now = now;
    this.watermark = watermark;
    this.batch = batch;
    this.phase = phase;
    exchanges = 0;
    this.out = out;
    this.changes = changes;
  }

  /** Says whose event or timer is added next; calls the worker first if the exchange is full. */
  void to(byte[] key) {
    boolean same = !keys.isEmpty() && keys.get(keys.size() - 1) == key;
    // A large record is sent once for all events of its key, and not with each of them.
    if (count >= MOST || size - (same ? keySize : 0) >= MOST_BYTES) {
      finish();
      same = false;
    }
    if (same) return;
    if (!keys.isEmpty()) endKey();
    keys.add(key);
    keyValues.read(key, keyColumns);
    rows.keys.add(keyRow);
    textLengths.writeInt(key.length);
    texts.write(key, 0, key.length);
    UnsafeRow record = store.record(key);
    rows.records.add(record);
    keySize = key.length + record.getSizeInBytes();
    size += keySize;
  }

  /** Adds an event of the key. */
  void event(byte[] envelope) {
    int input = spec.find(envelope);
    arrived[input].read(envelope);
    rows.events[input].add(arrived[input]);
    inputs.write(input);
    events.add(envelope);
    eventTimes.writeLong(Envelope.eventTime(envelope));
    keyEvents++;
    count++;
    size += envelope.length;
  }

  /** Adds a timer of the key that is due. */
  void timer(int kind, long time) {
    timers.add(new Emitted.Timer(kind, time, keys.get(keys.size() - 1)));
    timerKinds.write(kind);
    timerTimes.writeLong(time);
    keyTimers++;
    count++;
  }

  /** Has the key's expired state removed. */
  void cleanUp() {
    keyCleanUp = true;
    count++;
  }

  private void endKey() {
    eventCounts.writeInt(keyEvents);
    timerCounts.writeInt(keyTimers);
    cleanUps.write(keyCleanUp ? 1 : 0);
    keyEvents = 0;
    keyTimers = 0;
    keyCleanUp = false;
  }

  /** Calls the worker with what was added, and applies what it answers. */
  void finish() {
    if (keys.isEmpty()) return;
    endKey();
    try {
      write();
      if (worker == null) worker = WorkerPool.take(pool, List.of(spec));
      apply(worker.call(spec, events.size(), message, this::fetch));
    } catch (IOException e) {
      end(false);
      throw new UncheckedIOException(e);
    } catch (RuntimeException e) {
      end(false);
      throw e;
    }
    clear();
  }

  private void write() throws IOException {
    message.reset();
    message.writeLong(now);
    message.writeLong(watermark);
    message.writeLong(batch);
    message.writeInt(phase + 2 * exchanges++);
    message.writeInt(keys.size());
    message.writeInt(events.size());
    message.writeInt(timers.size());
    CallRows.write(rows.keys, message);
    section(textLengths, texts);
    CallRows.write(rows.records, message);
    section(eventCounts);
    CallRows.write(rows.events[0], message);
    section(eventTimes);
    section(timerCounts);
    section(timerKinds, timerTimes);
    section(cleanUps);
    if (spec.isConnected()) {
      section(inputs);
      CallRows.write(rows.events[1], message);
    }
    if (broadcast == null) return;
    // A worker that has not these rows asks for them.
    byte[] version = broadcast.rows().version();
    message.writeInt(version.length);
    message.write(version, 0, version.length);
  }

  private void section(MessageBody... parts) {
    int section = message.begin();
    for (MessageBody part : parts) message.write(part.array(), 0, part.size());
    message.end(section);
  }

  private void clear() {
    keys.clear();
    events.clear();
    timers.clear();
    for (MessageBody each : List.of(
        textLengths, texts, eventCounts, eventTimes, inputs, timerCounts, timerKinds, timerTimes, cleanUps)) each.reset();
    count = 0;
    size = 0;
  }

  /** Answers with pages of one list or map, of any keys of the exchange; or, behind the last of these, with the broadcast table. */
  private MessageBody fetch(int wanted, int var, byte[] body, int length) throws IOException {
    fetched.reset();
    if (broadcast != null && var == spec.state().vars()) {
      rows.broadcast(broadcast.rows()).writeTo(fetched);
      return fetched;
    }
    var places = new MessageReader(body, length);
    for (int i = 0; i < wanted; i++) {
      byte[] key = keys.get(places.intAt(Integer.BYTES * i));
      rows.addPage(var, store.page(key, var, places.longAt(Integer.BYTES * wanted + Long.BYTES * i)));
    }
    rows.fetched(var).writeTo(fetched);
    return fetched;
  }

  private void apply(Worker.Reply reply) throws IOException {
    emitted.begin(events, timers, now, bucket, out);
    for (Worker.RowError error : reply.errors()) emitted.reject(error.row(), error.text());
    MessageReader body = MessageReader.ofSections(reply.body());
    for (int i = 0; i < spec.outputs().size(); i++) rows.emitted(i, body, emitted);
    rows.changed(body, keys, store);
    // Three arrays: the keys, what is changed, and the times.
    int many = body.next() / (Integer.BYTES + 1 + Long.BYTES);
    for (int i = 0; i < many; i++)
      changes.change(
          keys.get(body.intAt(Integer.BYTES * i)), body.byteAt(Integer.BYTES * many + i),
          body.longAt((Integer.BYTES + 1) * many + Long.BYTES * i));
  }

  boolean isEnded() {
    return ended;
  }

  /** Gives the worker back, or ends it; nothing happens the second time. */
  void end(boolean succeeded) {
    if (ended) return;
    ended = true;
    rows.close();
    if (worker != null) WorkerPool.end(pool, worker, succeeded);
  }
}
