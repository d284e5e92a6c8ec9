package io.headgate.kernel.rolling;

import io.headgate.kernel.json.JsonEncoder;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.DecoderFactory;
import org.apache.spark.sql.types.StructType;

/** A staged row as JSON, or as the line that it is, for people. */
final class RowText {
  private RowText() {}

  static byte[] of(Sheet sheet, byte[] row) {
    if (Sheet.isPacked(sheet.type())) return packed(sheet, row);
    return sheet.type().equals("avro") ? avro(sheet, row) : row;
  }

  private static byte[] avro(Sheet sheet, byte[] row) {
    try {
      var reader = new GenericDatumReader<>(new Schema.Parser().parse(sheet.schema()));
      return reader.read(null, DecoderFactory.get().binaryDecoder(row, null)).toString().getBytes(StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static byte[] packed(Sheet sheet, byte[] packed) {
    StructType schema = sheet.columns();
    Layout layout = Layout.of(schema);
    List<String> names = Arrays.stream(schema.fieldNames()).filter(name -> JsonEncoder.writes(layout.find(name).type())).toList();
    var row = new SegmentedRow(layout);
    row.set(0, packed, 0, packed.length);
    return new JsonEncoder(names, names.stream().map(layout::find).toList()).encode(row);
  }
}
