package io.headgate.kernel.rolling;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import org.apache.avro.Schema;
import org.apache.avro.file.CodecFactory;
import org.apache.avro.file.DataFileWriter;
import org.apache.avro.generic.GenericDatumWriter;

/** Encoded records in one of Avro's container files, with their schema. */
final class AvroFile implements VisibleFile {
  private static final int LEVEL = 6;
  private static final int ZSTD_LEVEL = 3;

  private final DataFileWriter<Object> writer;

  AvroFile(Sheet sheet, Path file) throws IOException {
    Schema schema = new Schema.Parser().parse(sheet.schema());
    writer = new DataFileWriter<>(new GenericDatumWriter<>(schema));
    writer.setCodec(codec(sheet.compression()));
    // Avro's own mark between blocks is random, and the same rows must give the same bytes.
    writer.create(schema, Files.newOutputStream(file), mark(sheet.schema()));
  }

  private static CodecFactory codec(String compression) {
    return switch (compression) {
      case "none" -> CodecFactory.nullCodec();
      case "gzip" -> CodecFactory.deflateCodec(LEVEL);
      case "zstd" -> CodecFactory.zstandardCodec(ZSTD_LEVEL);
      case "snappy" -> CodecFactory.snappyCodec();
      default -> throw new IllegalArgumentException("unknown compression " + compression);
    };
  }

  private static byte[] mark(String schema) {
    try {
      return MessageDigest.getInstance("MD5").digest(schema.getBytes(StandardCharsets.UTF_8));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  @Override public void row(byte[] bytes, int start, int length) throws IOException {
    writer.appendEncoded(ByteBuffer.wrap(bytes, start, length));
  }

  @Override public void close() throws IOException {
    writer.close();
  }
}
