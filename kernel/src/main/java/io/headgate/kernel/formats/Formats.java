package io.headgate.kernel.formats;

import com.fasterxml.jackson.databind.JsonNode;
import io.headgate.kernel.formats.avro.AvroFormat;
import io.headgate.kernel.formats.csv.CsvDecoder;
import io.headgate.kernel.formats.csv.CsvEncoder;
import io.headgate.kernel.formats.csv.CsvShape;
import io.headgate.kernel.json.JsonDecoder;
import io.headgate.kernel.json.JsonEncoder;
import io.headgate.kernel.json.RowEncoder;
import io.headgate.kernel.json.TextEncoder;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;

/** The decoders and encoders of all formats, by the name of the format. */
public final class Formats {
  private Formats() {}

  /**
   * Returns the decoder of a source.
   *
   * @param format the format's {@code type} and options
   * @param schema the columns of the rows
   * @param table whether a record may end its key's row
   * @param lines the form of records on lines
   * @param source the source's name for people
   */
  public static RecordDecoder decoder(JsonNode format, StructType schema, boolean table, Lines lines, String source) {
    RecordDecoder decoder = switch (name(format)) {
      case "json" -> new JsonDecoder(schema, table);
      case "text" -> new TextDecoder();
      case "csv" -> new CsvDecoder(CsvShape.of(format), schema);
      case "raw" -> new RawDecoder();
      case "avro" -> AvroFormat.decoder(format, schema, source);
      default -> throw new IllegalArgumentException("no decoder for format " + format);
    };
    return lines == Lines.BASE64 ? new Base64Lines.Decoder(decoder) : decoder;
  }

  /**
   * Returns the encoder of an output.
   *
   * @param format the format's {@code type} and options
   * @param columns what the rows are written of
   * @param lines the form of records on lines
   */
  public static RowEncoder encoder(JsonNode format, OutputColumns columns, Lines lines) {
    RowEncoder encoder = switch (name(format)) {
      case "json" -> new JsonEncoder(columns.checked(JsonEncoder::writes, "JSON").names(), columns.paths());
      case "text" -> new TextEncoder(columns.only(StringType.class, "text", "a string"));
      case "csv" -> new CsvEncoder(CsvShape.of(format), columns.checked(CsvEncoder::writes, "CSV"), lines != Lines.NONE);
      case "raw" -> new RawEncoder(columns.picked(format.path("column")).only(BinaryType.class, "raw", "bytes"));
      case "avro" -> AvroFormat.encoder(format, columns);
      default -> throw new IllegalArgumentException("no encoder for format " + format);
    };
    return lines == Lines.BASE64 ? new Base64Lines.Encoder(encoder) : encoder;
  }

  private static String name(JsonNode format) {
    return format.path("type").asText("json");
  }
}
