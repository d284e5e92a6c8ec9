package io.headgate.kernel.formats.avro;

import io.headgate.kernel.json.BadRecord;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.sql.types.StructType;

/**
 * How records of one writer's schema become rows of some columns. One plan serves one thread; the row it returns is overwritten by
 * the next call.
 */
public final class ReaderPlan {
  private final List<Problem> problems = new ArrayList<>();
  private final RecordReader record;
  private final StructType columns;
  private final AvroInput in = new AvroInput();
  /** Null where a column is not flat. */
  private final UnsafeRowWriter row;
  private UnsafeProjection pack;

  /**
   * @param written a record
   * @param reader what the reader declared, for its aliases and defaults; may be null
   */
  public ReaderPlan(Schema written, StructType columns, Schema reader) {
    this.columns = columns;
    record = new RecordReader(written, columns, reader, new ValueReaders(problems), "");
    boolean flat = Arrays.stream(columns.fields()).allMatch(field -> ValueReaders.isFlat(field.dataType()));
    row = flat ? new UnsafeRowWriter(columns.length()) : null;
  }

  /** Returns all that keeps some records or all of them from being rows. */
  public List<Problem> problems() {
    return problems;
  }

  /** Returns what keeps every record from being a row, or null. */
  public Problem failure() {
    return problems.stream().filter(problem -> !problem.isOfBranch()).findFirst().orElse(null);
  }

  /** Reads the record that fills a range of bytes. */
  public UnsafeRow decode(byte[] from, int start, int length) throws BadRecord {
    UnsafeRow out = decodeFirst(from, start, length);
    in.finish();
    return out;
  }

  /** Reads the record that a range of bytes begins with. */
  public UnsafeRow decodeFirst(byte[] from, int start, int length) throws BadRecord {
    in.set(from, start, length);
    if (row == null) {
      InternalRow values = record.fields(in);
      if (pack == null) pack = UnsafeProjection.create(columns.asNullable());
      return pack.apply(values);
    }
    row.reset();
    row.zeroOutNullBytes();
    record.fields(in, row);
    return row.getRow();
  }

  /** Returns the place behind the record that was read last. */
  public int end() {
    return in.place();
  }
}
