package io.headgate.kernel.formats.avro;

import io.headgate.kernel.json.BadRecord;
import java.util.Arrays;
import java.util.UUID;
import org.apache.avro.Schema;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.unsafe.types.UTF8String;

/** Readers of text and of bytes. */
final class TextReaders {
  private static final int UUID_BYTES = 16;

  private TextReaders() {}

  /** Returns the reader of a column of text: text itself, bytes that are text, a symbol, or an id; null for other types. */
  static ValueReader find(Schema written, String field) {
    return switch (written.getType()) {
      case STRING, BYTES -> AvroTypes.logical(written).equals("decimal") ? null : new Text(field);
      case ENUM -> new Symbol(
          written.getEnumSymbols().stream().map(UTF8String::fromString).toArray(UTF8String[]::new));
      case FIXED -> AvroTypes.logical(written).equals("uuid") ? new Id() : null;
      default -> null;
    };
  }

  /** Returns the reader of a column of bytes, or null. */
  static ValueReader findBytes(Schema written) {
    return switch (written.getType()) {
      case STRING, BYTES -> new Binary(-1);
      case FIXED -> new Binary(written.getFixedSize());
      default -> null;
    };
  }

  static UTF8String text(AvroInput in, String field) throws BadRecord {
    int length = in.readLength();
    int begin = in.take(length);
    in.checkText(begin, length, field);
    return UTF8String.fromBytes(Arrays.copyOfRange(in.bytes(), begin, begin + length));
  }

  private record Text(String field) implements ValueReader {
    @Override public Object read(AvroInput in) throws BadRecord {
      return text(in, field);
    }

    @Override public void read(AvroInput in, UnsafeRowWriter row, int i) throws BadRecord {
      int length = in.readLength();
      int begin = in.take(length);
      in.checkText(begin, length, field);
      row.write(i, in.bytes(), begin, length);
    }
  }

  private record Symbol(UTF8String[] symbols) implements ValueReader {
    @Override public Object read(AvroInput in) throws BadRecord {
      return symbols[in.readIndex(symbols.length, "symbol")];
    }

    @Override public void read(AvroInput in, UnsafeRowWriter row, int i) throws BadRecord {
      row.write(i, symbols[in.readIndex(symbols.length, "symbol")]);
    }
  }

  /** A UUID in 16 bytes. */
  private record Id() implements ValueReader {
    @Override public Object read(AvroInput in) throws BadRecord {
      var bytes = java.nio.ByteBuffer.wrap(in.bytes(), in.take(UUID_BYTES), UUID_BYTES);
      return UTF8String.fromString(new UUID(bytes.getLong(), bytes.getLong()).toString());
    }

    @Override public void read(AvroInput in, UnsafeRowWriter row, int i) throws BadRecord {
      row.write(i, (UTF8String) read(in));
    }
  }

  /** @param size how many bytes each value has; -1 if a value says so itself */
  private record Binary(int size) implements ValueReader {
    @Override public Object read(AvroInput in) throws BadRecord {
      int length = size < 0 ? in.readLength() : size;
      int begin = in.take(length);
      return Arrays.copyOfRange(in.bytes(), begin, begin + length);
    }

    @Override public void read(AvroInput in, UnsafeRowWriter row, int i) throws BadRecord {
      int length = size < 0 ? in.readLength() : size;
      row.write(i, in.bytes(), in.take(length), length);
    }
  }
}
