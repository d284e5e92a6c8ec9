package io.headgate.kernel.functions;

import io.headgate.kernel.rows.SegmentedRow;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.unsafe.types.UTF8String;

/** One task's calls of an async function: each row's answer is recorded before the row leaves. */
final class AsyncTurn {
  private final FunctionSpec function;
  private final SegmentedRow row;
  private final SegmentedRow result;
  private final SegmentedRow failed;
  private final ArrowSender given;
  private final ArrowReceiver returned;
  private final UnsafeProjection failure = UnsafeProjection.create(CallSpec.FAILURE);
  private final MessageBody body;
  private final RecordedAnswers recorded;

  /** The answer for one of the rows that were asked for. */
  record Answered(int row, RecordedAnswers.Found found) {}

  /** Has the worker call the function. */
  interface Asking {
    Worker.Reply ask(int rows, MessageBody body);
  }

  AsyncTurn(FunctionSpec function, ArrowSender given, ArrowReceiver returned, Epoch epoch) throws IOException {
    this.function = function;
    this.given = given;
    this.returned = returned;
    body = new MessageBody(function.name());
    row = new SegmentedRow(function.input());
    result = new SegmentedRow(function.result());
    failed = new SegmentedRow(function.call().failed());
    recorded = new RecordedAnswers(AnswerFolder.of(function.call().folder()), function.uid(), epoch);
  }

  /** Returns the answers for rows, in the order in which rows leave. */
  List<Answered> answers(List<byte[]> envelopes, Asking asking) throws IOException {
    var identities = envelopes.stream().map(Answer.Identity::of).toList();
    var out = new ArrayList<Answered>();
    var missing = new ArrayList<Integer>();
    for (int i = 0; i < envelopes.size(); i++) {
      RecordedAnswers.Found found = recorded.find(identities.get(i));
      if (found == null) missing.add(i);
      else out.add(new Answered(i, found));
    }
    if (!missing.isEmpty()) {
      recorded.record(ask(missing, envelopes, identities, asking));
      // Rows that nothing distinguishes get their answers in the order of the file, as in a replay.
      for (int i : missing) out.add(new Answered(i, recorded.find(identities.get(i))));
    }
    boolean ordered = function.call().ordered();
    out.sort(ordered ? Comparator.comparingInt(Answered::row) : Comparator.comparingLong(each -> each.found().order()));
    return out;
  }

  private List<Answer> ask(List<Integer> rows, List<byte[]> envelopes, List<Answer.Identity> identities, Asking asking)
      throws IOException {
    for (int i : rows) {
      row.read(envelopes.get(i));
      given.add(row);
    }
    body.reset();
    given.writeTo(body);
    Worker.Reply reply = asking.ask(rows.size(), body);
    var out = new ArrayList<Answer>(rows.size());
    if (reply.rows() > 0) returned.read(reply.body(), 0, reply.length());
    for (int i = 0; i < reply.rows(); i++)
      out.add(new Answer(identities.get(rows.get(reply.origins()[i])), 0, returned.get(i).copy().getBytes(), null));
    for (Worker.RowError error : reply.errors())
      out.add(new Answer(identities.get(rows.get(error.row())), error.attempts(), null, error.text()));
    if (out.size() != rows.size())
      throw new FunctionFailure(FunctionFailure.BAD_RESULT, function.name() + " answered " + out.size() + " of " + rows.size() + " rows");
    return out;
  }

  /** Returns the result of a call as a row; it is valid until the next call. */
  SegmentedRow result(Answer answer) {
    result.set(0, answer.row(), 0, answer.row().length);
    return result;
  }

  /** Returns a row whose call failed, with why; it is valid until the next call. */
  SegmentedRow failed(byte[] envelope, Answer answer) {
    InternalRow why = new GenericInternalRow(new Object[] {UTF8String.fromString(answer.error()), answer.attempts()});
    failed.read(envelope, function.input().segments());
    failed.set(function.call().failed().segments() - 1, failure.apply(why));
    return failed;
  }
}
