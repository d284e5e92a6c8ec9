package io.headgate.kernel.folder;

import io.headgate.kernel.formats.RecordDecoder;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import io.headgate.kernel.json.JsonEncoder;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;

/** Takes a row of a file as its reader has packed it. A dead letter shows it as JSON. */
final class PackedDecoder implements RecordDecoder {
  private final StructType schema;
  private final NullChecks nulls;
  private transient UnsafeRow row;
  private transient JsonEncoder encoder;

  PackedDecoder(StructType schema) {
    this.schema = schema;
    nulls = new NullChecks(schema);
  }

  @Override public UnsafeRow decode(byte[] from, int start, int length) throws BadRecord {
    if (row == null) row = new UnsafeRow(schema.length());
    row.pointTo(from, Platform.BYTE_ARRAY_OFFSET + start, length);
    String missing = nulls.find(row);
    if (missing != null) throw new BadRecord(Reason.NULL_FIELD, "column '" + missing + "' must not be null");
    return row;
  }

  @Override public byte[] shown(byte[] from, int start, int length) {
    Layout layout = Layout.of(schema.asNullable());
    if (encoder == null) {
      List<String> names = Arrays.asList(schema.fieldNames());
      encoder = new JsonEncoder(names, names.stream().map(layout::find).toList());
    }
    var packed = new UnsafeRow(schema.length());
    packed.pointTo(from, Platform.BYTE_ARRAY_OFFSET + start, length);
    var segments = new SegmentedRow(layout);
    segments.set(packed);
    return encoder.encode(segments);
  }
}
