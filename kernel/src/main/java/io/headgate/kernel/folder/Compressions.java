package io.headgate.kernel.folder;

import com.github.luben.zstd.ZstdInputStream;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.Locale;
import java.util.zip.GZIPInputStream;
import org.xerial.snappy.SnappyFramedInputStream;

/** What compressed files of lines hold, by the end of their names. */
final class Compressions {
  private static final int BUFFER = 64 * 1024;
  /** The first bytes of Snappy's own format for files; Hadoop's begins with the length of a block. */
  private static final int FRAMED = 0xff;

  private Compressions() {}

  static InputStream open(String path, InputStream in) throws IOException {
    String name = path.toLowerCase(Locale.ROOT);
    if (name.endsWith(".gz") || name.endsWith(".gzip")) return new GZIPInputStream(in, BUFFER);
    if (name.endsWith(".zst") || name.endsWith(".zstd")) return new ZstdInputStream(new BufferedInputStream(in, BUFFER));
    return openSnappy(new BufferedInputStream(in, BUFFER));
  }

  private static InputStream openSnappy(BufferedInputStream in) throws IOException {
    in.mark(1);
    int first = in.read();
    in.reset();
    if (first == FRAMED) return new SnappyFramedInputStream(in, true);
    return new SnappyBlocks(in);
  }
}
