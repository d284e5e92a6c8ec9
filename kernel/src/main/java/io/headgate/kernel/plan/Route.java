package io.headgate.kernel.plan;

import io.headgate.kernel.json.JsonEncoder;
import io.headgate.kernel.json.KeyText;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.Header;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.io.Serializable;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import scala.Tuple2;

/**
 * The way of a port's rows through stateless steps to the operators and outputs that take them.
 *
 * <p>Steps keep buffers: a route serves one thread, and each task gets its own copy.
 */
public final class Route implements Serializable {
  /** Takes finished rows: what they are spread by, and the envelope. */
  public interface Out {
    void add(Tuple2<byte[], byte[]> row);
  }

  /** One step: takes a row, and hands on none, one or several. */
  interface Step extends Serializable {
    /** @param spread a key for rows that go to no operator, so that they spread over tasks */
    void take(SegmentedRow row, Header header, byte[] spread, Out out);
  }

  private final Step[] steps;

  Route(List<Step> steps) {
    this.steps = steps.toArray(Step[]::new);
  }

  public void send(SegmentedRow row, Header header, byte[] spread, Out out) {
    for (Step step : steps) step.take(row, header, spread, out);
  }

  static final class Where implements Step {
    private final RowProgram condition;
    private final Route then;

    Where(RowProgram condition, Route then) {
      this.condition = condition;
      this.then = then;
    }

    @Override public void take(SegmentedRow row, Header header, byte[] spread, Out out) {
      UnsafeRow answer = condition.apply(row);
      if (!answer.isNullAt(0) && answer.getBoolean(0)) then.send(row, header, spread, out);
    }
  }

  static final class Compute implements Step {
    private final RowProgram columns;
    private final Route then;
    private transient SegmentedRow result;

    Compute(RowProgram columns, Route then) {
      this.columns = columns;
      this.then = then;
    }

    @Override public void take(SegmentedRow row, Header header, byte[] spread, Out out) {
      if (result == null) result = new SegmentedRow(Layout.of(columns.result()));
      result.set(columns.apply(row));
      then.send(result, header, spread, out);
    }
  }

  /** To an operator, spread by key; a row whose key is null still reaches it, and matches nothing there. */
  record ToOperator(int address, KeyText key) implements Step {
    @Override public void take(SegmentedRow row, Header header, byte[] spread, Out out) {
      byte[] found = key.of(row);
      out.add(found != null
          ? new Tuple2<>(found, row.pack(header, Envelope.EVENT, address))
          : new Tuple2<>(spread, row.pack(header, Envelope.KEYLESS, address)));
    }
  }

  /** To a DataFrame function of the user's. */
  record ToFunction(int address) implements Step {
    @Override public void take(SegmentedRow row, Header header, byte[] spread, Out out) {
      out.add(new Tuple2<>(spread, row.pack(header, Envelope.EVENT, address)));
    }
  }

  record ToOutput(int address, JsonEncoder encoder) implements Step {
    @Override public void take(SegmentedRow row, Header header, byte[] spread, Out out) {
      byte[] value = encoder.encode(row);
      out.add(new Tuple2<>(spread, header.envelope(Envelope.OUTPUT, address, value, value.length)));
    }
  }

  record Count(int address) implements Step {
    @Override public void take(SegmentedRow row, Header header, byte[] spread, Out out) {
      out.add(new Tuple2<>(spread, header.envelope(Envelope.COUNTED, address)));
    }
  }
}
