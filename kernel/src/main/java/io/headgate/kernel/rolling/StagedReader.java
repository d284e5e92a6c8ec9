package io.headgate.kernel.rolling;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.headgate.kernel.CodedFailure;
import java.io.BufferedInputStream;
import java.io.Closeable;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import net.jpountz.lz4.LZ4BlockInputStream;

/** Reads what {@link StagedWriter} has written; a file that is not complete fails. */
final class StagedReader implements Closeable {
  private static final int BUFFER = 256 * 1024;

  /** @param path the folders of a partition, with slashes; empty for none */
  record Section(Sheet sheet, String path) {}

  private final String name;
  private final DataInputStream in;
  private final List<Sheet> sheets = new ArrayList<>();
  private final List<Section> places = new ArrayList<>();
  private Section section;
  private byte[] bytes = new byte[4096];
  private int length;
  private long rows;

  private StagedReader(String name, InputStream plain) throws IOException {
    this.name = name;
    var head = new DataInputStream(plain);
    byte[] magic = head.readNBytes(StagedWriter.MAGIC.length);
    if (!Arrays.equals(magic, StagedWriter.MAGIC)) throw corrupted("it does not begin as a staged file of format 1", null);
    int size = head.readInt();
    if (size < 0 || size > 1 << 28) throw corrupted("its header has " + size + " bytes", null);
    for (JsonNode sheet : new ObjectMapper().readTree(head.readNBytes(size))) sheets.add(Sheet.of(sheet));
    in = new DataInputStream(new BufferedInputStream(LZ4BlockInputStream.newBuilder().build(plain), BUFFER));
  }

  static StagedReader open(Place place, String name) throws IOException {
    String file = place.nameOf(name);
    InputStream plain = new BufferedInputStream(place.open(name), BUFFER);
    try {
      return new StagedReader(file, plain);
    } catch (EOFException e) {
      plain.close();
      throw new CodedFailure("STAGED_CORRUPTED", "cannot read staged rows from " + file + ": it ends in the middle", e);
    } catch (IOException | RuntimeException e) {
      plain.close();
      throw e;
    }
  }

  /** Moves to the next row; returns false behind the last one. */
  boolean next() throws IOException {
    try {
      int entry = in.readInt();
      while (entry == StagedWriter.PLACE) {
        Sheet sheet = sheets.get(in.readInt());
        places.add(new Section(sheet, new String(in.readNBytes(in.readInt()), StandardCharsets.UTF_8)));
        entry = in.readInt();
      }
      if (entry == StagedWriter.END) {
        long told = in.readLong();
        if (told != rows) throw corrupted("it has " + rows + " rows, and was written with " + told, null);
        return false;
      }
      section = places.get(entry);
      length = in.readInt();
      if (length < 0) throw corrupted("a row has " + length + " bytes", null);
      if (bytes.length < length) bytes = new byte[Math.max(length, (int) Math.min(Integer.MAX_VALUE - 8, bytes.length * 2L))];
      in.readFully(bytes, 0, length);
    } catch (EOFException e) {
      throw corrupted("it ends in the middle", e);
    } catch (IndexOutOfBoundsException e) {
      throw corrupted("an entry has no place", e);
    } catch (IOException e) {
      // LZ4's checksums have no class of exceptions of their own.
      if (String.valueOf(e.getMessage()).startsWith("Stream is corrupted")) throw corrupted(e.getMessage(), e);
      throw e;
    }
    rows++;
    return true;
  }

  Section section() {
    return section;
  }

  /** Returns the row's bytes, up to {@link #length}; overwritten by the next row. */
  byte[] bytes() {
    return bytes;
  }

  int length() {
    return length;
  }

  private CodedFailure corrupted(String why, Throwable cause) {
    return new CodedFailure("STAGED_CORRUPTED", "cannot read staged rows from " + name + ": " + why, cause);
  }

  @Override public void close() throws IOException {
    in.close();
  }
}
