package io.headgate.kernel.formats.avro;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.avro.JsonProperties;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.avro.SchemaParseException;
import org.apache.spark.sql.types.*;

/** Schemas from text and from columns. */
public final class AvroSchemas {
  private static final Pattern NAME = Pattern.compile("[A-Za-z_][A-Za-z0-9_]*");

  /** Columns that no schema can have. */
  public static final class Unwritable extends RuntimeException {
    public final String hint;

    Unwritable(String message, String hint) {
      super(message);
      this.hint = hint;
    }
  }

  private AvroSchemas() {}

  /** Returns the schema of a text, or throws Avro's own exception. */
  public static Schema parse(String text) {
    return checked(new Schema.Parser().parse(text));
  }

  /** Refuses names that nothing defines, which the parser leaves as records without fields. */
  public static Schema checked(Schema schema) {
    check(schema, new HashSet<>());
    return schema;
  }

  private static void check(Schema schema, Set<String> done) {
    switch (schema.getType()) {
      case RECORD -> {
        if (!schema.hasFields()) throw new SchemaParseException("it refers to " + schema.getFullName() + ", which is not defined");
        if (done.add(schema.getFullName())) schema.getFields().forEach(field -> check(field.schema(), done));
      }
      case ARRAY -> check(schema.getElementType(), done);
      case MAP -> check(schema.getValueType(), done);
      case UNION -> schema.getTypes().forEach(branch -> check(branch, done));
      default -> {}
    }
  }

  /** Returns a name that Avro takes, made of any text. */
  public static String nameOf(String text) {
    String name = text.replaceAll("[^A-Za-z0-9_]", "_");
    return NAME.matcher(name).matches() ? name : "_" + name;
  }

  /**
   * Returns the schema of a record with some columns.
   *
   * @param name the record's name, with its namespace or without
   */
  public static Schema ofColumns(StructType columns, String name) {
    return record(columns, name, "", new HashSet<>());
  }

  private static Schema record(StructType columns, String wanted, String prefix, Set<String> taken) {
    String name = wanted;
    // Columns a_b and a.b would give two records one name.
    for (int i = 2; !taken.add(name); i++) name = wanted + "_" + i;
    var fields = new ArrayList<Schema.Field>();
    for (StructField column : columns.fields()) {
      String path = prefix + column.name();
      if (!NAME.matcher(column.name()).matches())
        throw new Unwritable("column '" + path + "' has a name that Avro does not take: letters, digits and _, no digit first",
            "rename it: .select(\"`" + column.name() + "` AS " + nameOf(column.name()) + "\", …)");
      Schema type = nullable(of(column.dataType(), name + "_" + column.name(), path, taken), column.nullable());
      fields.add(column.nullable()
          ? new Schema.Field(column.name(), type, null, JsonProperties.NULL_VALUE) : new Schema.Field(column.name(), type));
    }
    return Schema.createRecord(name, null, null, false, fields);
  }

  private static Schema nullable(Schema type, boolean nullable) {
    return nullable ? Schema.createUnion(List.of(Schema.create(Schema.Type.NULL), type)) : type;
  }

  private static Schema of(DataType type, String name, String path, Set<String> taken) {
    if (type instanceof LongType) return Schema.create(Schema.Type.LONG);
    if (type instanceof IntegerType || type instanceof ShortType || type instanceof ByteType) return Schema.create(Schema.Type.INT);
    if (type instanceof DoubleType) return Schema.create(Schema.Type.DOUBLE);
    if (type instanceof FloatType) return Schema.create(Schema.Type.FLOAT);
    if (type instanceof BooleanType) return Schema.create(Schema.Type.BOOLEAN);
    if (type instanceof StringType) return Schema.create(Schema.Type.STRING);
    if (type instanceof BinaryType) return Schema.create(Schema.Type.BYTES);
    if (type instanceof DateType) return LogicalTypes.date().addToSchema(Schema.create(Schema.Type.INT));
    if (type instanceof TimestampType) return LogicalTypes.timestampMicros().addToSchema(Schema.create(Schema.Type.LONG));
    if (type instanceof DecimalType d)
      return LogicalTypes.decimal(d.precision(), d.scale()).addToSchema(Schema.create(Schema.Type.BYTES));
    if (type instanceof ArrayType a)
      return Schema.createArray(nullable(of(a.elementType(), name, path + "[]", taken), a.containsNull()));
    if (type instanceof MapType m && m.keyType() instanceof StringType)
      return Schema.createMap(nullable(of(m.valueType(), name, path + "[]", taken), m.valueContainsNull()));
    if (type instanceof StructType s) return record(s, name, path + ".", taken);
    throw new Unwritable("column '" + path + "' is " + type.sql() + ", which has no form in Avro",
        "leave it out, or cast it with select");
  }
}
