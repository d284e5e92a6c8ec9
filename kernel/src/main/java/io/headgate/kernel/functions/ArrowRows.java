package io.headgate.kernel.functions;

import io.headgate.kernel.rows.Layout;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.channels.Channels;
import java.util.Arrays;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.VectorLoader;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.VectorUnloader;
import org.apache.arrow.vector.ipc.ReadChannel;
import org.apache.arrow.vector.ipc.WriteChannel;
import org.apache.arrow.vector.ipc.message.MessageSerializer;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.ProjectingInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The rows of one function as Arrow record batches: those it is given, and those it returns. One serves one task.
 *
 * <p>Uses internals of Spark seen in 4.3.0.
 */
final class ArrowRows implements AutoCloseable {
  private static final String ZONE = "UTC";

  private final BufferAllocator allocator;
  private final VectorSchemaRoot given;
  private final ArrowWriter writer;
  private final ProjectingInternalRow projection;
  private final Bytes bytes = new Bytes();
  /** Null for a function that returns no rows of its own. */
  private final VectorSchemaRoot returned;
  private final ColumnarBatch columns;
  private final UnsafeProjection packer;

  ArrowRows(FunctionSpec function) {
    allocator = ArrowUtils.rootAllocator().newChildAllocator(function.name(), 0, Long.MAX_VALUE);
    given = VectorSchemaRoot.create(schema(function.sent()), allocator);
    writer = ArrowWriter.create(given);
    boolean all = function.columns().length == function.input().schema().length();
    projection = all ? null : ProjectingInternalRow.apply(
        function.sent(),
        CollectionConverters.asScala(Arrays.stream(function.columns()).mapToObj(i -> (Object) i).toList()).toSeq());
    if (function.kind() == FunctionSpec.Kind.FILTER) {
      returned = null;
      columns = null;
      packer = null;
      return;
    }
    Layout layout = function.result();
    returned = VectorSchemaRoot.create(schema(layout.schema()), allocator);
    columns = new ColumnarBatch(
        returned.getFieldVectors().stream().map(ArrowColumnVector::new).toArray(ColumnVector[]::new));
    packer = UnsafeProjection.create(layout.schema());
  }

  static Schema schema(StructType type) {
    return ArrowUtils.toArrowSchema(type, ZONE, true, false, false);
  }

  /** Adds a row to those that are sent next. */
  void add(InternalRow row) {
    if (projection == null) {
      writer.write(row);
    } else {
      projection.project(row);
      writer.write(projection);
    }
  }

  /** Returns the added rows as one message, and starts over. The bytes are valid until the next call. */
  Bytes take() throws IOException {
    writer.finish();
    bytes.reset();
    try (var batch = new VectorUnloader(given).getRecordBatch()) {
      MessageSerializer.serialize(new WriteChannel(Channels.newChannel(bytes)), batch);
    }
    writer.reset();
    return bytes;
  }

  /** Reads the rows that the function returned; they are valid until the next call. */
  void read(byte[] message, int length) throws IOException {
    var channel = new ReadChannel(Channels.newChannel(new ByteArrayInputStream(message, 0, length)));
    try (var batch = MessageSerializer.deserializeRecordBatch(channel, allocator)) {
      new VectorLoader(returned).load(batch);
    }
    columns.setNumRows(returned.getRowCount());
  }

  /** Returns a row that the function returned, packed; it is valid until the next call. */
  UnsafeRow get(int i) {
    return packer.apply(columns.getRow(i));
  }

  @Override public void close() {
    given.close();
    if (returned != null) returned.close();
    allocator.close();
  }

  /** Bytes that can be sent without a copy. */
  static final class Bytes extends ByteArrayOutputStream {
    byte[] array() {
      return buf;
    }
  }
}
