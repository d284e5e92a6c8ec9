package io.headgate.kernel.functions;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.channels.Channels;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.VectorLoader;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ReadChannel;
import org.apache.arrow.vector.ipc.message.MessageSerializer;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Rows that a worker returned as Arrow record batches. One serves one task.
 *
 * <p>Uses internals of Spark seen in 4.3.0.
 */
public final class ArrowReceiver implements AutoCloseable {
  private final BufferAllocator allocator;
  private final VectorSchemaRoot root;
  private final VectorLoader loader;
  private final ColumnarBatch columns;
  private final UnsafeProjection packer;

  /** @param name how Arrow names the memory */
  public ArrowReceiver(String name, StructType type) {
    allocator = ArrowUtils.rootAllocator().newChildAllocator(name, 0, Long.MAX_VALUE);
    root = VectorSchemaRoot.create(ArrowSender.schema(type), allocator);
    loader = new VectorLoader(root);
    columns = new ColumnarBatch(root.getFieldVectors().stream().map(ArrowColumnVector::new).toArray(ColumnVector[]::new));
    packer = UnsafeProjection.create(type);
  }

  /** Reads the rows of a message and returns how many there are; they are valid until the next call. */
  public int read(byte[] message, int start, int length) throws IOException {
    var channel = new ReadChannel(Channels.newChannel(new ByteArrayInputStream(message, start, length)));
    try (var batch = MessageSerializer.deserializeRecordBatch(channel, allocator)) {
      loader.load(batch);
    }
    columns.setNumRows(root.getRowCount());
    return root.getRowCount();
  }

  /** Returns a row, packed; it is valid until the next call. */
  public UnsafeRow get(int i) {
    return packer.apply(columns.getRow(i));
  }

  @Override public void close() {
    root.close();
    allocator.close();
  }
}
