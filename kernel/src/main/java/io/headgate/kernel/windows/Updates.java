package io.headgate.kernel.windows;

import io.headgate.kernel.json.KeyValues;
import io.headgate.kernel.plan.Route;
import io.headgate.kernel.rows.Bucket;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.Header;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;

/** Makes the rows of a window operator and sends them on their way; one serves one task. */
final class Updates {
  /** What a row tells. */
  enum Kind { PARTIAL, FINAL, CORRECTION }

  private static final long SEED = 42;

  private final Route route;
  private final int aggregates;
  private final KeyValues keys;
  private final Object[] values;
  private final GenericInternalRow loose;
  private final UnsafeProjection pack;
  private final SegmentedRow row;
  private final Header header = new Header();

  Updates(WindowSpec spec) {
    route = spec.updates();
    aggregates = spec.aggregates().size();
    keys = new KeyValues(spec.key().stream().map(StructField::dataType).toList());
    StructType schema = WindowSpec.schema(spec.key(), spec.aggregates());
    values = new Object[schema.length()];
    loose = new GenericInternalRow(values);
    pack = UnsafeProjection.create(schema);
    row = new SegmentedRow(Layout.of(schema));
    header.source = Envelope.NO_SOURCE;
  }

  /**
   * @param onTime whether the window was closed, or looked at, as soon as the watermark allowed
   * @param now the clock as of the batch, in epoch milliseconds: the machine's own would make other rows in a replay
   */
  void send(OpenWindow window, Kind kind, boolean onTime, long now, byte[] key, Route.Out out) {
    fill(window, kind, now, key);
    row.set(pack.apply(loose));
    header.eventTime = window.end - 1;
    header.offset = window.end;
    header.timestamp = now;
    header.flags = onTime ? Envelope.ON_TIME : 0;
    // Rows of many keys share all that stands above: these give them an order that is the same in every replay.
    header.sequence = XXH64.hashUnsafeBytes(key, Platform.BYTE_ARRAY_OFFSET, key.length, SEED);
    header.lane = (int) window.count;
    route.send(row, header, Bucket.of(key), out);
  }

  private void fill(OpenWindow window, Kind kind, long now, byte[] key) {
    keys.read(key, values);
    int at = keys.columns();
    values[at++] = Math.multiplyExact(window.from, 1000L);
    values[at++] = Math.multiplyExact(window.end, 1000L);
    for (int i = 0; i < aggregates; i++) values[at++] = window.result(i);
    values[at++] = kind == Kind.PARTIAL;
    values[at++] = kind == Kind.CORRECTION;
    values[at] = Math.multiplyExact(now, 1000L);
  }
}
