package io.headgate.kernel.formats.avro;

import io.headgate.kernel.json.BadRecord;
import java.util.HashMap;
import java.util.Map;
import org.apache.avro.Schema;

/** Passes over values that no column wants, of recursive schemas, too. */
final class Skipping {
  private final Map<String, Named> records = new HashMap<>();

  /** Stands for a record in its own fields. */
  private static final class Named implements AvroInput.Element {
    AvroInput.Element[] fields;

    @Override public void take(AvroInput in) throws BadRecord {
      in.enter();
      for (AvroInput.Element field : fields) field.take(in);
      in.leave();
    }
  }

  AvroInput.Element of(Schema schema) {
    return switch (schema.getType()) {
      case NULL -> in -> {};
      case BOOLEAN -> AvroInput::readBoolean;
      case INT -> AvroInput::readInt;
      case LONG -> AvroInput::readLong;
      case FLOAT -> in -> in.take(4);
      case DOUBLE -> in -> in.take(8);
      case STRING, BYTES -> in -> in.take(in.readLength());
      case FIXED -> fixed(schema.getFixedSize());
      case ENUM -> symbol(schema.getEnumSymbols().size());
      case ARRAY -> blocks(of(schema.getElementType()));
      case MAP -> entries(of(schema.getValueType()));
      case UNION -> union(schema);
      case RECORD -> record(schema);
    };
  }

  private static AvroInput.Element fixed(int size) {
    return in -> in.take(size);
  }

  private static AvroInput.Element symbol(int count) {
    return in -> in.readIndex(count, "symbol");
  }

  private static AvroInput.Element blocks(AvroInput.Element element) {
    return in -> in.blocks(element);
  }

  private static AvroInput.Element entries(AvroInput.Element value) {
    return blocks(in -> {
      in.take(in.readLength());
      value.take(in);
    });
  }

  private AvroInput.Element union(Schema schema) {
    AvroInput.Element[] branches = schema.getTypes().stream().map(this::of).toArray(AvroInput.Element[]::new);
    return in -> branches[in.readIndex(branches.length, "branch")].take(in);
  }

  private AvroInput.Element record(Schema schema) {
    Named known = records.get(schema.getFullName());
    if (known != null) return known;
    var record = new Named();
    records.put(schema.getFullName(), record);
    record.fields = schema.getFields().stream().map(field -> of(field.schema())).toArray(AvroInput.Element[]::new);
    return record;
  }
}
