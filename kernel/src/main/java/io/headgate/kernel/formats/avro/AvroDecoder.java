package io.headgate.kernel.formats.avro;

import io.headgate.kernel.formats.RecordDecoder;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import org.apache.avro.AvroRuntimeException;
import org.apache.avro.Schema;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/**
 * Decodes records of Avro's binary encoding: each by the schema that it names in a registry, or all by one.
 *
 * <p>A schema of a registry never changes, so another attempt decodes the same.
 */
public final class AvroDecoder implements RecordDecoder {
  /** What a registry's records begin with: a zero, and the id of their schema. */
  public static final int HEADER = 5;

  private final StructType columns;
  /** Null where records name no schema. */
  private final Subject subject;
  /** With a registry what the reader declared, which may be null; else the schema of all records. */
  private final String schema;
  private transient Map<Integer, Plan> plans;
  private transient Plan last;
  private transient Schema declared;

  /** A plan, or the reason that there is none. */
  private record Plan(int id, ReaderPlan reader, BadRecord why) {}

  public AvroDecoder(StructType columns, Subject subject, Schema schema) {
    this.columns = columns;
    this.subject = subject;
    this.schema = schema == null ? null : schema.toString();
  }

  @Override public void atStart() {
    if (subject != null) subject.checkReader(columns, schema == null ? null : AvroSchemas.parse(schema));
  }

  @Override public UnsafeRow decode(byte[] from, int start, int length) throws BadRecord {
    if (plans == null) prepare();
    if (subject == null) return last.reader.decode(from, start, length);
    if (length < HEADER || from[start] != 0) throw unframed(from, start, length);
    int id = ByteBuffer.wrap(from, start + 1, 4).getInt();
    if (last == null || last.id != id) last = find(id);
    if (last.why != null) throw last.why;
    return last.reader.decode(from, start + HEADER, length - HEADER);
  }

  private void prepare() {
    plans = new HashMap<>();
    declared = schema == null ? null : AvroSchemas.parse(schema);
    if (subject == null) last = new Plan(0, new ReaderPlan(declared, columns, null), null);
  }

  private static BadRecord unframed(byte[] from, int start, int length) {
    String found = length == 0 ? "it is empty" : length < HEADER ? "it has " + length + " bytes"
        : "its first byte is " + (from[start] & 0xff);
    return new BadRecord(Reason.BAD_AVRO, "a record of a schema registry begins with a zero and four bytes of an id; " + found);
  }

  private Plan find(int id) {
    Plan plan = plans.get(id);
    if (plan == null) plans.put(id, plan = plan(id));
    return plan;
  }

  private Plan plan(int id) {
    var client = subject.registry().client();
    try {
      Schema written = client.schema(id);
      if (written.getType() != Schema.Type.RECORD)
        throw new BadRecord(Reason.SCHEMA_INCOMPATIBLE, "schema " + id + " is " + AvroTypes.describe(written) + ", not a record");
      var reader = new ReaderPlan(written, columns, declared);
      Problem failure = reader.failure();
      if (failure == null) return new Plan(id, reader, null);
      throw new BadRecord(Reason.SCHEMA_INCOMPATIBLE, "schema " + id + ": " + failure);
    } catch (BadRecord e) {
      return new Plan(id, null, e);
    } catch (AvroRuntimeException e) {
      return new Plan(id, null, new BadRecord(Reason.SCHEMA_INCOMPATIBLE, "schema " + id + " cannot be used: " + e.getMessage()));
    }
  }
}
