package io.headgate.kernel.rolling;

import com.github.luben.zstd.ZstdOutputStream;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.GZIPOutputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.compress.SnappyCodec;

/** Encoded rows, each on a line. */
final class LinesFile implements VisibleFile {
  private static final int BUFFER = 64 * 1024;

  private final OutputStream out;

  LinesFile(Sheet sheet, Path file) throws IOException {
    OutputStream plain = Files.newOutputStream(file);
    try {
      out = new BufferedOutputStream(compressed(sheet.compression(), plain), BUFFER);
    } catch (IOException | RuntimeException e) {
      plain.close();
      throw e;
    }
    if (sheet.header() == null) return;
    out.write(sheet.header().getBytes(StandardCharsets.UTF_8));
    out.write('\n');
  }

  private static OutputStream compressed(String compression, OutputStream plain) throws IOException {
    return switch (compression) {
      case "none" -> plain;
      // Its header has no time: the same rows give the same bytes.
      case "gzip" -> new GZIPOutputStream(plain, BUFFER);
      case "zstd" -> new ZstdOutputStream(plain);
      case "snappy" -> {
        var codec = new SnappyCodec();
        codec.setConf(new Configuration(false));
        yield codec.createOutputStream(plain);
      }
      default -> throw new IllegalArgumentException("unknown compression " + compression);
    };
  }

  @Override public void row(byte[] bytes, int start, int length) throws IOException {
    out.write(bytes, start, length);
    out.write('\n');
  }

  @Override public void close() throws IOException {
    out.close();
  }
}
