package io.headgate.kernel.formats.avro;

import com.fasterxml.jackson.databind.JsonNode;
import io.headgate.kernel.formats.OutputColumns;
import io.headgate.kernel.formats.RecordDecoder;
import io.headgate.kernel.formats.registry.SchemaRegistry;
import io.headgate.kernel.json.RowEncoder;
import io.headgate.kernel.plan.PlanException;
import java.util.List;
import org.apache.avro.AvroRuntimeException;
import org.apache.avro.Schema;
import org.apache.spark.sql.types.StructType;

/** The decoder and the encoder that the description of a format stands for. */
public final class AvroFormat {
  private AvroFormat() {}

  /** @param name the source, as messages name it */
  public static RecordDecoder decoder(JsonNode format, StructType columns, String name) {
    Schema given = given(format, name);
    if (format.hasNonNull("registry")) return new AvroDecoder(columns, subject(format, name), given);
    Schema written = given == null ? derived(format, columns, name) : given;
    List<Problem> problems = new ReaderPlan(written, columns, null).problems();
    if (!problems.isEmpty())
      throw new PlanException("SCHEMA_INCOMPATIBLE",
          "cannot read " + name + " by schema " + written.getFullName() + ": " + problems.get(0), problems.get(0).hint());
    return new AvroDecoder(columns, null, written);
  }

  public static RowEncoder encoder(JsonNode format, OutputColumns columns) {
    String name = columns.output();
    Subject subject = format.hasNonNull("registry") ? subject(format, name) : null;
    Schema schema = given(format, name);
    if (schema == null && (subject == null || subject.registers())) schema = derived(format, columns.type(), name);
    try {
      return new AvroEncoder(columns, schema, subject);
    } catch (AvroSchemas.Unwritable e) {
      throw new PlanException("BAD_OUTPUT", "cannot plan " + name + ": " + e.getMessage(), e.hint);
    }
  }

  private static Subject subject(JsonNode format, String name) {
    return new Subject(
        SchemaRegistry.Address.parse(format.get("registry")), format.path("subject").asText(null),
        format.path("register").asBoolean(true), name);
  }

  private static Schema given(JsonNode format, String name) {
    if (!format.hasNonNull("schema")) return null;
    Schema schema;
    try {
      schema = AvroSchemas.parse(format.get("schema").asText());
    } catch (AvroRuntimeException e) {
      throw new PlanException("BAD_FORMAT", "cannot plan " + name + ": its Avro schema cannot be read: "
          + e.getMessage().strip().lines().findFirst().orElse(""), "check the schema's text");
    }
    if (schema.getType() == Schema.Type.RECORD) return schema;
    throw new PlanException("BAD_FORMAT",
        "cannot plan " + name + ": its Avro schema is " + AvroTypes.describe(schema) + ", and rows need a record", "use a record");
  }

  private static Schema derived(JsonNode format, StructType columns, String name) {
    try {
      return AvroSchemas.ofColumns(columns, format.path("record").asText("row"));
    } catch (AvroSchemas.Unwritable e) {
      throw new PlanException("BAD_OUTPUT", "cannot plan " + name + ": " + e.getMessage(), e.hint);
    }
  }
}
