package io.headgate.kernel.folder;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import org.xerial.snappy.Snappy;

/**
 * The blocks in which Hadoop's programs compress files with Snappy: the length of what is in a block, then for each chunk its
 * compressed length and its bytes. Lengths are compared with what is there: those of a corrupted file may be anything, and
 * Hadoop's own reader would ask for as much memory.
 */
final class SnappyBlocks extends InputStream {
  /** No bytes of Snappy stand for more than so many each. */
  private static final long DENSEST = 64;

  private final InputStream in;
  private byte[] chunk = new byte[0];
  private int at;
  private long left;

  SnappyBlocks(InputStream in) {
    this.in = in;
  }

  @Override public int read() throws IOException {
    return at < chunk.length || open() ? chunk[at++] & 0xff : -1;
  }

  @Override public int read(byte[] into, int start, int length) throws IOException {
    if (length == 0) return 0;
    if (at >= chunk.length && !open()) return -1;
    int count = Math.min(length, chunk.length - at);
    System.arraycopy(chunk, at, into, start, count);
    at += count;
    return count;
  }

  /** Goes to the next chunk with a byte; returns false at the end. */
  private boolean open() throws IOException {
    at = 0;
    chunk = new byte[0];
    while (chunk.length == 0) {
      while (left == 0) {
        int first = in.read();
        if (first < 0) return false;
        left = length(first);
      }
      int first = in.read();
      if (first < 0) throw new EOFException("the file ends within a block");
      take(length(first));
    }
    return true;
  }

  private void take(int size) throws IOException {
    // Grows with what is there.
    byte[] compressed = in.readNBytes(size);
    if (compressed.length < size) throw new EOFException("the file ends within a block");
    long whole = Snappy.uncompressedLength(compressed);
    if (whole > left || whole > DENSEST * size) throw new IOException("a chunk has " + whole + " bytes, and its block " + left);
    chunk = Snappy.uncompress(compressed);
    left -= whole;
  }

  private int length(int first) throws IOException {
    byte[] rest = in.readNBytes(3);
    if (rest.length < 3) throw new EOFException("the file ends within a block");
    int length = first << 24 | (rest[0] & 0xff) << 16 | (rest[1] & 0xff) << 8 | (rest[2] & 0xff);
    if (length < 0) throw new IOException("the length of a block is " + length);
    return length;
  }

  @Override public void close() throws IOException {
    in.close();
  }
}
