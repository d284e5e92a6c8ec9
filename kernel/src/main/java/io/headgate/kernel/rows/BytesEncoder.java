package io.headgate.kernel.rows;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.encoders.AgnosticEncoder;
import org.apache.spark.sql.catalyst.encoders.AgnosticEncoders;
import org.apache.spark.sql.catalyst.encoders.ExpressionEncoder;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/**
 * Bytes as a row of one column, as Spark's own encoder of bytes writes them.
 *
 * <p>State opens its encoders in each task of each batch. Spark's has its plan analyzed and its code generated every time, a
 * tenth of the time that the tasks of a small batch take; this one has nothing to prepare.
 */
public final class BytesEncoder extends ExpressionEncoder<byte[]> {
  private static final long serialVersionUID = 1;

  public static final BytesEncoder INSTANCE = new BytesEncoder(ExpressionEncoder.apply(binary()));

  private BytesEncoder(ExpressionEncoder<byte[]> sparks) {
    super(sparks.encoder(), sparks.objSerializer(), sparks.objDeserializer());
  }

  @SuppressWarnings("unchecked")
  private static AgnosticEncoder<byte[]> binary() {
    return (AgnosticEncoder<byte[]>) (AgnosticEncoder<?>) AgnosticEncoders.BinaryEncoder$.MODULE$;
  }

  /** Returns this encoder: it reads the first column of any row. */
  @Override public ExpressionEncoder<byte[]> resolveAndBind(Seq<Attribute> attributes, Analyzer analyzer) {
    return this;
  }

  @Override public Serializer<byte[]> createSerializer() {
    return new ToRow();
  }

  @Override public Deserializer<byte[]> createDeserializer() {
    return new FromRow();
  }

  @SuppressWarnings("unchecked")
  private static Seq<Expression> none() {
    return (Seq<Expression>) (Seq<?>) Nil$.MODULE$;
  }

  private static final class ToRow extends Serializer<byte[]> {
    private static final long serialVersionUID = 1;
    private transient UnsafeRowWriter writer;

    ToRow() {
      super(none());
    }

    @Override public InternalRow apply(byte[] bytes) {
      if (writer == null) writer = new UnsafeRowWriter(1);
      writer.reset();
      writer.zeroOutNullBytes();
      if (bytes == null) writer.setNullAt(0);
      else writer.write(0, bytes);
      return writer.getRow();
    }
  }

  private static final class FromRow extends Deserializer<byte[]> {
    private static final long serialVersionUID = 1;

    FromRow() {
      super(none());
    }

    @Override public byte[] apply(InternalRow row) {
      return row.isNullAt(0) ? null : row.getBinary(0);
    }
  }
}
