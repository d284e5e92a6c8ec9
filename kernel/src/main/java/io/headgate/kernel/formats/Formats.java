package io.headgate.kernel.formats;

import com.fasterxml.jackson.databind.JsonNode;
import io.headgate.kernel.formats.avro.AvroFormat;
import io.headgate.kernel.formats.changes.DebeziumDecoder;
import io.headgate.kernel.formats.changes.UpsertEncoder;
import io.headgate.kernel.formats.csv.CsvDecoder;
import io.headgate.kernel.formats.csv.CsvEncoder;
import io.headgate.kernel.formats.csv.CsvShape;
import io.headgate.kernel.json.JsonDecoder;
import io.headgate.kernel.json.JsonEncoder;
import io.headgate.kernel.json.RowEncoder;
import io.headgate.kernel.json.TextEncoder;
import java.util.List;
import java.util.Optional;
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
   * @param key the key of a table's rows; null for a stream
   * @param lines the form of records on lines
   * @param source the source's name for people
   */
  public static RecordDecoder decoder(
      JsonNode format, StructType schema, List<String> key, Lines lines, String source) {
    RecordDecoder decoder = switch (name(format)) {
      case "json" -> new JsonDecoder(schema, key != null);
      case "debezium" -> new DebeziumDecoder(format, schema, key);
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
      case "upsert" -> UpsertEncoder.of(format, columns.checked(JsonEncoder::writes, "JSON"));
      case "text" -> new TextEncoder(columns.only(StringType.class, "text", "a string"));
      case "csv" -> new CsvEncoder(CsvShape.of(format), columns.checked(CsvEncoder::writes, "CSV"), lines != Lines.NONE);
      case "raw" -> new RawEncoder(columns.picked(format.path("column")).only(BinaryType.class, "raw", "bytes"));
      case "avro" -> AvroFormat.encoder(format, columns);
      default -> throw new IllegalArgumentException("no encoder for format " + format);
    };
    return lines == Lines.BASE64 ? new Base64Lines.Encoder(encoder) : encoder;
  }

  /** Returns the columns of the JSON objects that an output writes; empty where it writes other records. */
  public static Optional<StructType> findObject(JsonNode format, OutputColumns columns) {
    return switch (name(format)) {
      case "json" -> Optional.of(columns.type());
      case "upsert" -> Optional.of(UpsertEncoder.written(format, columns.type()));
      default -> Optional.empty();
    };
  }

  private static String name(JsonNode format) {
    return format.path("type").asText("json");
  }
}
