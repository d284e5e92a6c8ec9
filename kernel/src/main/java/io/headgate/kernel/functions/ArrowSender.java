package io.headgate.kernel.functions;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.util.Arrays;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.VectorUnloader;
import org.apache.arrow.vector.ipc.WriteChannel;
import org.apache.arrow.vector.ipc.message.MessageSerializer;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.arrow.vector.util.OversizedAllocationException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.ProjectingInternalRow;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Rows on their way to a worker, as Arrow record batches. One serves one task.
 *
 * <p>Uses internals of Spark seen in 4.3.0.
 */
public final class ArrowSender implements AutoCloseable {
  private static final String ZONE = "UTC";

  private final BufferAllocator allocator;
  private final VectorSchemaRoot root;
  private final ArrowWriter writer;
  private final ProjectingInternalRow projection;
  private int rows;

  /**
   * @param name how Arrow names the memory
   * @param sent the columns that are sent
   */
  public ArrowSender(String name, StructType sent) {
    this(name, sent, null);
  }

  /** @param columns the places of these columns in the rows that are added; null for rows that have no others */
  public ArrowSender(String name, StructType sent, int[] columns) {
    allocator = ArrowUtils.rootAllocator().newChildAllocator(name, 0, Long.MAX_VALUE);
    root = VectorSchemaRoot.create(schema(sent), allocator);
    writer = ArrowWriter.create(root);
    projection = columns == null ? null : ProjectingInternalRow.apply(
        sent, CollectionConverters.asScala(Arrays.stream(columns).mapToObj(i -> (Object) i).toList()).toSeq());
  }

  /** Returns how Arrow describes rows. */
  public static Schema schema(StructType type) {
    return ArrowUtils.toArrowSchema(type, ZONE, true, false, false);
  }

  /** Adds a row to those that are sent next. */
  public void add(InternalRow row) {
    rows++;
    try {
      if (projection == null) {
        writer.write(row);
      } else {
        projection.project(row);
        writer.write(projection);
      }
    } catch (OversizedAllocationException e) {
      throw FunctionFailure.tooLarge(allocator.getName(), Integer.MAX_VALUE);
    }
  }

  /** Returns how many rows are sent next. */
  public int rows() {
    return rows;
  }

  /** Writes the added rows as one message, and starts over. */
  public void writeTo(OutputStream out) throws IOException {
    writer.finish();
    try (var batch = new VectorUnloader(root).getRecordBatch()) {
      MessageSerializer.serialize(new WriteChannel(Channels.newChannel(out)), batch);
    }
    writer.reset();
    rows = 0;
  }

  @Override public void close() {
    root.close();
    allocator.close();
  }
}
