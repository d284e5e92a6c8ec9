package io.headgate.kernel.functions;

import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.plan.Placement;
import io.headgate.kernel.plan.Route;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.Header;
import io.headgate.kernel.rows.SegmentedRow;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import scala.Tuple2;

/** One task's rows on their way through a stage of functions. */
final class FunctionCalls implements Iterator<Tuple2<Integer, byte[]>> {
  /** One exchange with the worker has at most so many rows and bytes, unless a single row has more. */
  private static final int MOST_ROWS = 4096;
  private static final int MOST_BYTES = 4 << 20;

  private final FunctionStage stage;
  private final WorkerPool.Key key;
  private final Iterator<Tuple2<Integer, byte[]>> rows;
  private final boolean present;
  private final Epoch epoch;
  private final int mostRows;
  private final Turn[] turns;
  private final ArrayDeque<Tuple2<Integer, byte[]>> ready = new ArrayDeque<>();
  private final Slots slots = new Slots();
  private final Header header = new Header();
  private Worker worker;
  private boolean ended;

  /** The rows of the present round for one function: the envelopes, and the slot of each. */
  private static final class Turn implements AutoCloseable {
    final FunctionSpec function;
    final ArrowSender given;
    /** Null for a function that returns no rows of its own. */
    final ArrowReceiver returned;
    final MessageBody body;
    final SegmentedRow row;
    final SegmentedRow result;
    final List<byte[]> envelopes = new ArrayList<>();
    final List<Integer> places = new ArrayList<>();
    /** Null for a function that is not async, and before its first row. */
    AsyncTurn async;

    Turn(FunctionSpec function) {
      this.function = function;
      body = new MessageBody(function.name());
      boolean all = function.columns().length == function.input().schema().length();
      given = new ArrowSender(function.name(), function.sent(), all ? null : function.columns());
      boolean filters = function.kind() == FunctionSpec.Kind.FILTER;
      returned = filters ? null : new ArrowReceiver(function.name(), function.result().schema());
      row = new SegmentedRow(function.input());
      result = new SegmentedRow(function.result());
    }

    @Override public void close() {
      given.close();
      if (returned != null) returned.close();
    }
  }

  /** @param epoch null for functions that ask nothing outside of the job */
  FunctionCalls(FunctionStage stage, WorkerPool.Key key, Iterator<Tuple2<Integer, byte[]>> rows, Epoch epoch) {
    this.epoch = epoch;
    mostRows = stage.mostRows(MOST_ROWS);
    this.stage = stage;
    this.key = key;
    this.rows = rows;
    present = stage.isPresent();
    turns = new Turn[stage.functions().size()];
  }

  @Override public boolean hasNext() {
    while (ready.isEmpty() && rows.hasNext()) {
      Tuple2<Integer, byte[]> first = rows.next();
      int place = stage.find(first._2());
      if (place < 0) ready.add(first);
      else round(first, place);
    }
    if (ready.isEmpty()) end(true);
    return !ready.isEmpty();
  }

  @Override public Tuple2<Integer, byte[]> next() {
    return ready.removeFirst();
  }

  /** Takes rows until there are enough for one exchange, and has the functions called. */
  private void round(Tuple2<Integer, byte[]> first, int function) {
    int addressed = 0;
    long size = 0;
    Tuple2<Integer, byte[]> row = first;
    int place = function;
    while (true) {
      int slot = slots.add();
      if (place < 0) {
        slots.put(slot, row);
      } else {
        push(place, row._2(), slot);
        addressed++;
        size += row._2().length;
      }
      if (addressed >= mostRows || size >= MOST_BYTES || slots.size() >= 4 * mostRows || !rows.hasNext()) break;
      row = rows.next();
      place = stage.find(row._2());
    }
    for (int i = 0; i < turns.length; i++) if (turns[i] != null) call(turns[i], i);
    slots.moveTo(ready);
  }

  private void push(int function, byte[] envelope, int slot) {
    if (turns[function] == null) turns[function] = new Turn(stage.functions().get(function));
    turns[function].envelopes.add(envelope);
    turns[function].places.add(slot);
  }

  private void call(Turn turn, int function) {
    if (turn.function.call() != null) ask(turn, function);
    else exchangeAll(turn, function);
    turn.envelopes.clear();
    turn.places.clear();
  }

  /** Has an async function answer the rows of the round; each answer is recorded before the first row leaves. */
  private void ask(Turn turn, int function) {
    try {
      if (turn.async == null) turn.async = new AsyncTurn(turn.function, turn.given, turn.returned, epoch);
      int most = turn.function.call().mostRows();
      for (int from = 0; from < turn.envelopes.size(); from += most) {
        List<byte[]> part = turn.envelopes.subList(from, Math.min(from + most, turn.envelopes.size()));
        List<AsyncTurn.Answered> answers = turn.async.answers(
            part, (rows, body) -> worker().call(turn.function, rows, body, null));
        // The first row to leave takes the place of the first that came, and so on.
        for (int i = 0; i < answers.size(); i++)
          leave(turn, function, part.get(answers.get(i).row()), answers.get(i).found().answer(), turn.places.get(from + i));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void leave(Turn turn, int function, byte[] envelope, Answer answer, int slot) {
    header.read(envelope);
    if (answer.row() == null) send(turn.function.call().route(), function, turn.async.failed(envelope, answer), slot);
    else send(turn.function.route(), function, turn.async.result(answer), slot);
  }

  private Worker worker() {
    if (worker == null) worker = WorkerPool.take(key, stage.functions());
    return worker;
  }

  private void exchangeAll(Turn turn, int function) {
    int from = 0;
    while (from < turn.envelopes.size()) {
      int to = from;
      for (long size = 0; to < turn.envelopes.size() && to - from < MOST_ROWS && size < MOST_BYTES; to++) {
        byte[] envelope = turn.envelopes.get(to);
        size += envelope.length;
        turn.row.read(envelope);
        turn.given.add(turn.row);
      }
      exchange(turn, function, from, to);
      from = to;
    }
  }

  private void exchange(Turn turn, int function, int from, int to) {
    try {
      turn.body.reset();
      turn.given.writeTo(turn.body);
      Worker.Reply reply = worker().call(turn.function, to - from, turn.body, null);
      for (Worker.RowError error : reply.errors()) reject(turn, from + error.row(), error.text());
      if (turn.function.kind() == FunctionSpec.Kind.FILTER) {
        for (int i = 0; i < reply.rows(); i++) pass(turn, function, from + origin(reply, i));
      } else if (reply.rows() > 0) {
        turn.returned.read(reply.body(), 0, reply.length());
        results(turn, function, from, reply, to - from);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static int origin(Worker.Reply reply, int i) {
    return reply.origins() == null ? i : reply.origins()[i];
  }

  private void reject(Turn turn, int i, String text) {
    turn.row.read(turn.envelopes.get(i));
    header.read(turn.envelopes.get(i));
    int slot = turn.places.get(i);
    turn.function.failing().reject(
        new BadRecord(BadRecord.Reason.FUNCTION_FAILED, text), null, turn.row, header, Placement.spread(present, header),
        row -> slots.put(slot, row));
  }

  private void pass(Turn turn, int function, int i) {
    byte[] envelope = turn.envelopes.get(i);
    turn.row.read(envelope);
    header.read(envelope);
    send(turn.function.route(), function, turn.row, turn.places.get(i));
  }

  private void results(Turn turn, int function, int from, Worker.Reply reply, int given) {
    int[] made = turn.function.multiplies() ? new int[given] : null;
    for (int i = 0; i < reply.rows(); i++) {
      int origin = origin(reply, i);
      header.read(turn.envelopes.get(from + origin));
      if (made != null) header.ordinal = Ordinals.of(header.ordinal, made[origin]++, turn.function.name());
      turn.result.set(turn.returned.get(i));
      send(turn.function.route(), function, turn.result, turn.places.get(from + origin));
    }
  }

  /** Sends a row on its way; one that goes to a later function of this stage waits for its turn. */
  private void send(Route route, int function, SegmentedRow row, int slot) {
    route.send(row, header, Placement.spread(present, header), sent -> {
      int next = stage.find(sent._2());
      if (next > function) push(next, sent._2(), slot);
      else slots.put(slot, sent);
    });
  }

  /** Gives the worker back, or ends it; nothing happens the second time. */
  void end(boolean succeeded) {
    if (ended) return;
    ended = true;
    for (Turn turn : turns) if (turn != null) turn.close();
    if (worker != null) WorkerPool.end(key, worker, succeeded);
  }
}
