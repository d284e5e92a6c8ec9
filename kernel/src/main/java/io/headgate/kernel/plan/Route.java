package io.headgate.kernel.plan;

import io.headgate.kernel.PortTally;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.DeadLetter;
import io.headgate.kernel.json.KeyText;
import io.headgate.kernel.json.OutputKey;
import io.headgate.kernel.json.RowEncoder;
import io.headgate.kernel.rolling.PartitionPath;
import io.headgate.kernel.rows.Bucket;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.Header;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import scala.Tuple2;

/**
 * The way of a port's rows through stateless steps to the operators and outputs that take them.
 *
 * <p>Steps keep buffers: a route serves one thread, and each task gets its own copy.
 */
public final class Route implements Serializable {
  /** Takes finished rows: the bucket they are spread by, and the envelope. */
  public interface Out {
    void add(Tuple2<Integer, byte[]> row);
  }

  /** One step: takes a row, and hands on none, one or several. */
  interface Step extends Serializable {
    /** @param spread the bucket of rows that go to no operator; null where each has its own ({@link #place}) */
    void take(SegmentedRow row, Header header, Integer spread, Out out);
  }

  private final Step[] steps;
  private final PortTally tally;
  private final int port;

  /** @param port the place of the rows that are sent in the tally */
  Route(List<Step> steps, PortTally tally, int port) {
    this.steps = steps.toArray(Step[]::new);
    this.tally = tally;
    this.port = port;
  }

  public void send(SegmentedRow row, Header header, Integer spread, Out out) {
    tally.count(port);
    for (Step step : steps) step.take(row, header, spread, out);
  }

  /** Returns the bucket of a row whose order means nothing. */
  private static Integer place(Integer spread, Header header) {
    return spread == null ? Bucket.spread(header) : spread;
  }

  /**
   * Returns the bucket of a row for an output: one task has all rows of a message key, or else of a source's partition.
   *
   * @param key null where the row has none
   */
  private static Integer place(Integer spread, Header header, byte[] key) {
    if (spread != null) return spread;
    return key == null ? Bucket.ofPartition(header) : Bucket.of(key);
  }

  /**
   * What becomes of a row that cannot go on, such as one for which an expression fails (a cast that does not fit, a division
   * by zero): a dead letter.
   *
   * <p>Raised, it would end the job, and every attempt after it at the same row.
   *
   * @param job the job whose rows they are
   * @param topics the topic of each source's records, by the source's number; null for one that reads several
   * @param side which of an operator's two streams the rows are of, left or right; null where there is one
   */
  public record Failing(
      int deadLetters, String job, String[] topics, String operator, String side, RowEncoder encoder, PortTally tally, int port)
      implements Serializable {
    /** Returns what a program makes of a row, or null if it fails; then the dead letter is on its way. */
    UnsafeRow apply(RowProgram program, SegmentedRow row, Header header, Integer spread, Out out) {
      try {
        return program.apply(row);
      } catch (Exception e) {
        BadRecord why = RowFailure.of(BadRecord.Reason.EXPRESSION_FAILED, e);
        reject(why, program.failing(row), row, header, spread, out);
        return null;
      }
    }

    /** @param expression the SQL that failed; null where none did */
    public void reject(BadRecord why, String expression, SegmentedRow row, Header header, Integer spread, Out out) {
      String topic = header.source < topics.length ? topics[header.source] : null;
      letter(why, new DeadLetter.Row(expression, topic, null, side), row, header, spread, out);
    }

    /**
     * Does so for what a function failed on that keeps something for each key.
     *
     * @param row the event; null for a timer
     */
    public void rejectOf(byte[] key, BadRecord why, SegmentedRow row, Header header, Integer spread, Out out) {
      String topic = header.source < topics.length ? topics[header.source] : null;
      var told = new DeadLetter.Row(null, topic, new String(key, StandardCharsets.UTF_8), row == null ? null : side);
      letter(why, told, row, header, spread, out);
    }

    private void letter(BadRecord why, DeadLetter.Row told, SegmentedRow row, Header header, Integer spread, Out out) {
      tally.count(port);
      byte[] raw = row == null ? null : raw(row);
      byte[] letter = DeadLetter.ofRow(
          job, operator, told, header.partition, header.offset, header.timestamp, why, raw)
          .encode();
      out.add(new Tuple2<>(place(spread, header), header.envelope(Envelope.OUTPUT, deadLetters, letter, letter.length)));
    }

    /** Returns the row as JSON, or null if it has no such form. */
    private byte[] raw(SegmentedRow row) {
      try {
        return encoder.encode(row);
      } catch (Exception e) {
        RowFailure.of(BadRecord.Reason.ROW_FAILED, e);
        return null;
      }
    }
  }

  static final class Where implements Step {
    private final RowProgram condition;
    private final Failing failing;
    private final Route then;

    Where(RowProgram condition, Failing failing, Route then) {
      this.condition = condition;
      this.failing = failing;
      this.then = then;
    }

    @Override public void take(SegmentedRow row, Header header, Integer spread, Out out) {
      UnsafeRow answer = failing.apply(condition, row, header, spread, out);
      if (answer == null) return;
      if (!answer.isNullAt(0) && answer.getBoolean(0)) then.send(row, header, spread, out);
    }
  }

  static final class Compute implements Step {
    private final RowProgram columns;
    private final Failing failing;
    private final Route then;
    private transient SegmentedRow result;

    Compute(RowProgram columns, Failing failing, Route then) {
      this.columns = columns;
      this.failing = failing;
      this.then = then;
    }

    @Override public void take(SegmentedRow row, Header header, Integer spread, Out out) {
      if (result == null) result = new SegmentedRow(Layout.of(columns.result()));
      UnsafeRow made = failing.apply(columns, row, header, spread, out);
      if (made == null) return;
      result.set(made);
      then.send(result, header, spread, out);
    }
  }

  /** To a table's rows, by the bucket of the row's key, which comes along; one whose key is null matches nothing. */
  record ToTable(int address, KeyText key, Failing failing) implements Step {
    @Override public void take(SegmentedRow row, Header header, Integer spread, Out out) {
      byte[] found;
      try {
        found = key.of(row);
      } catch (Exception e) {
        failing.reject(RowFailure.of(BadRecord.Reason.ROW_FAILED, e), null, row, header, spread, out);
        return;
      }
      out.add(found != null
          ? new Tuple2<>(Bucket.of(found), row.pack(header, Envelope.EVENT, address, found))
          : new Tuple2<>(place(spread, header), row.pack(header, Envelope.KEYLESS, address)));
    }
  }

  /**
   * To an operator that keeps something for each key; a row whose key is null has no place there.
   *
   * @param buckets how many the operator's keys are in
   */
  record ToKey(int address, KeyText key, int buckets, Failing failing) implements Step {
    @Override public void take(SegmentedRow row, Header header, Integer spread, Out out) {
      byte[] found;
      try {
        found = key.of(row);
        if (found == null) throw new BadRecord(BadRecord.Reason.NO_KEY, "no key: a key column is null");
      } catch (BadRecord e) {
        failing.reject(e, null, row, header, spread, out);
        return;
      } catch (Exception e) {
        failing.reject(RowFailure.of(BadRecord.Reason.ROW_FAILED, e), null, row, header, spread, out);
        return;
      }
      out.add(new Tuple2<>(Bucket.of(found, buckets), row.pack(header, Envelope.EVENT, address, found)));
    }
  }

  /**
   * To an operator that keeps nothing for a key: the rows of a source's partition stay together, and in order.
   *
   * @param buckets how many buckets they are in
   * @param spreads whether rows have no order, and each goes anywhere
   * @param key what stands for the key, null for none
   */
  record ToBroadcast(int address, int buckets, boolean spreads, byte[] key) implements Step {
    @Override public void take(SegmentedRow row, Header header, Integer spread, Out out) {
      Integer bucket = spreads ? Bucket.anywhere(header, buckets) : Bucket.ofPartition(header, buckets);
      out.add(new Tuple2<>(bucket, key == null
          ? row.pack(header, Envelope.EVENT, address) : row.pack(header, Envelope.EVENT, address, key)));
    }
  }

  /** To a DataFrame function of the user's. */
  record ToFunction(int address) implements Step {
    @Override public void take(SegmentedRow row, Header header, Integer spread, Out out) {
      out.add(new Tuple2<>(place(spread, header), row.pack(header, Envelope.EVENT, address)));
    }
  }

  /** @param key what message keys are made of; null where messages have none */
  record ToOutput(int address, RowEncoder encoder, OutputKey key, Failing failing) implements Step {
    @Override public void take(SegmentedRow row, Header header, Integer spread, Out out) {
      byte[] value;
      byte[] found;
      try {
        value = encoder.encode(row);
        found = key == null ? null : key.of(row);
      } catch (BadRecord e) {
        failing.reject(e, null, row, header, spread, out);
        return;
      } catch (Exception e) {
        failing.reject(RowFailure.of(BadRecord.Reason.ROW_FAILED, e), null, row, header, spread, out);
        return;
      }
      byte flags = header.flags;
      if (encoder.isTombstone()) header.flags |= Envelope.NO_VALUE;
      out.add(new Tuple2<>(place(spread, header, found), found == null
          ? header.envelope(Envelope.OUTPUT, address, value, value.length)
          : header.envelope(Envelope.OUTPUT, address, value, found)));
      header.flags = flags;
    }
  }

  /**
   * To a folder of files.
   *
   * @param path the row's partition; null where the output has none
   */
  record ToFolder(int address, RowEncoder encoder, PartitionPath path, Failing failing) implements Step {
    @Override public void take(SegmentedRow row, Header header, Integer spread, Out out) {
      byte[] value;
      byte[] folders;
      try {
        value = encoder.encode(row);
        folders = path == null ? null : path.of(row);
      } catch (BadRecord e) {
        failing.reject(e, null, row, header, spread, out);
        return;
      } catch (Exception e) {
        failing.reject(RowFailure.of(BadRecord.Reason.ROW_FAILED, e), null, row, header, spread, out);
        return;
      }
      // Not by partition: one task would have all rows of a day.
      out.add(new Tuple2<>(place(spread, header, null), folders == null
          ? header.envelope(Envelope.OUTPUT, address, value, value.length)
          : header.envelope(Envelope.OUTPUT, address, value, folders)));
    }
  }

  record Count(int address) implements Step {
    @Override public void take(SegmentedRow row, Header header, Integer spread, Out out) {
      out.add(new Tuple2<>(place(spread, header), header.envelope(Envelope.COUNTED, address)));
    }
  }
}
