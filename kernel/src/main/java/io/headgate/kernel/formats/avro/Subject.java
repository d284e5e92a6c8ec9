package io.headgate.kernel.formats.avro;

import io.headgate.kernel.formats.registry.SchemaRegistry;
import io.headgate.kernel.plan.PlanException;
import java.io.Serializable;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.spark.sql.types.StructType;

/**
 * A subject of a schema registry, whose versions are the schemas of a topic's records.
 *
 * @param subject its name; null for a source of several topics, whose subjects nobody knows
 * @param registers whether an output registers its schema; otherwise it writes by the latest version
 * @param user the source or output, as messages name it
 */
public record Subject(SchemaRegistry.Address registry, String subject, boolean registers, String user) implements Serializable {
  /** A schema that records are written by, and its id. */
  record Writing(Schema schema, int id) {}

  /**
   * Refuses columns that cannot hold all records of the latest version.
   *
   * @param declared the reader's schema; may be null
   */
  void checkReader(StructType columns, Schema declared) {
    if (subject == null) return;
    SchemaRegistry.Version latest = registry.client().latest(subject);
    // Its first records will bring the first version.
    if (latest == null) return;
    if (latest.schema().getType() != Schema.Type.RECORD)
      throw new PlanException("SCHEMA_INCOMPATIBLE",
          "cannot read " + user + ": " + named(latest) + " is " + AvroTypes.describe(latest.schema()) + ", and rows need a record",
          "read it with format=\"raw\", or name another subject");
    List<Problem> problems = new ReaderPlan(latest.schema(), columns, declared).problems();
    if (problems.isEmpty()) return;
    String more = problems.size() == 1 ? "" : ", and " + (problems.size() - 1) + " more do not fit";
    throw new PlanException("SCHEMA_INCOMPATIBLE",
        "cannot read " + user + " by " + named(latest) + ": " + problems.get(0) + more, problems.get(0).hint());
  }

  /**
   * Returns what an output's records are written by.
   *
   * @param schema what is to be registered; null for the latest version
   */
  Writing writing(Schema schema) {
    return registers ? register(schema) : latest();
  }

  private Writing latest() {
    SchemaRegistry.Version latest = registry.client().latest(subject);
    if (latest == null)
      throw new PlanException("SCHEMA_INCOMPATIBLE",
          "cannot write " + user + ": subject '" + subject + "' of the schema registry at " + registry.client().where()
              + " has no version",
          "register a schema first, or let the flow do so: Avro(register=True)");
    if (latest.schema().getType() != Schema.Type.RECORD)
      throw new PlanException("SCHEMA_INCOMPATIBLE",
          "cannot write " + user + ": " + named(latest) + " is " + AvroTypes.describe(latest.schema()) + ", and rows need a record",
          "name another subject");
    return new Writing(latest.schema(), latest.id());
  }

  private Writing register(Schema schema) {
    SchemaRegistry.Registered registered = registry.client().register(subject, schema);
    if (registered.refusal() == null) return new Writing(schema, registered.id());
    SchemaRegistry.Version latest = registry.client().latest(subject);
    String against = latest == null ? "" : ", whose latest version is " + latest.version();
    throw new PlanException("SCHEMA_REFUSED",
        "cannot write " + user + ": the schema registry at " + registry.client().where() + " refuses its schema for subject '"
            + subject + "' (" + registry.client().compatibility(subject) + ")" + against + ": " + registered.refusal(),
        "give new columns a type that may be null and keep those of the latest version; or write to a new subject: "
            + "Avro(subject=\"…\")");
  }

  /** Returns the error of columns that the latest version has no place for. */
  PlanException unwritable(AvroSchemas.Unwritable why) {
    return new PlanException("SCHEMA_INCOMPATIBLE",
        "cannot write " + user + " by the latest version of subject '" + subject + "': " + why.getMessage(), why.hint);
  }

  private String named(SchemaRegistry.Version version) {
    return "version " + version.version() + " of subject '" + subject + "'";
  }
}
