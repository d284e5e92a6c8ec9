package io.headgate.kernel.rolling;

import io.headgate.kernel.json.JsonEncoder;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.types.StructType;

/** A packed row as JSON, for people. */
final class PackedText {
  private PackedText() {}

  static byte[] of(Sheet sheet, byte[] packed) {
    StructType schema = sheet.columns();
    Layout layout = Layout.of(schema);
    List<String> names = Arrays.stream(schema.fieldNames()).filter(name -> JsonEncoder.writes(layout.find(name).type())).toList();
    var row = new SegmentedRow(layout);
    row.set(0, packed, 0, packed.length);
    return new JsonEncoder(names, names.stream().map(layout::find).toList()).encode(row);
  }
}
