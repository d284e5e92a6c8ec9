package io.headgate.kernel.postgres;

import io.headgate.kernel.CodedFailure;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.zip.CRC32C;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;

/** A file of lines with a format and a checksum before them: one i32 format (1), one i64 CRC-32C of the rest, the lines. */
final class SpoolPage {
  private static final int FORMAT = 1;
  private static final int HEADER = 12;

  private SpoolPage() {}

  static void write(CheckpointFileManager files, Path file, ByteArrayOutputStream lines, boolean overwrite) throws IOException {
    byte[] content = lines.toByteArray();
    var crc = new CRC32C();
    crc.update(content);
    var out = files.createAtomic(file, overwrite);
    try {
      out.write(ByteBuffer.allocate(HEADER).putInt(FORMAT).putLong(crc.getValue()).array());
      out.write(content);
      out.close();
    } catch (IOException | RuntimeException e) {
      out.cancel();
      throw e;
    }
  }

  /** Returns the lines of a page, or throws where it is not what was written. */
  static byte[] read(InputStream in, String name) throws IOException {
    byte[] all = in.readAllBytes();
    if (all.length < HEADER) throw damaged(name, "it has " + all.length + " bytes");
    ByteBuffer header = ByteBuffer.wrap(all);
    int format = header.getInt();
    if (format != FORMAT) throw damaged(name, "its format is " + format + ", and this release reads " + FORMAT);
    var crc = new CRC32C();
    crc.update(all, HEADER, all.length - HEADER);
    if (crc.getValue() != header.getLong()) throw damaged(name, "its checksum does not match");
    return Arrays.copyOfRange(all, HEADER, all.length);
  }

  static byte[] read(CheckpointFileManager files, Path file) throws IOException {
    try (InputStream in = files.open(file)) {
      return read(in, file.toString());
    } catch (FileNotFoundException e) {
      throw gone(file.toString(), e);
    }
  }

  static PostgresFailure gone(String name, Exception e) {
    return new PostgresFailure(CodedFailure.DATA_LOST, "cannot read the refresh of a table again: " + name + " was deleted", e);
  }

  private static PostgresFailure damaged(String name, String problem) {
    return new PostgresFailure(CodedFailure.CHECKPOINT_DAMAGED, "cannot read " + name + ": " + problem);
  }
}
