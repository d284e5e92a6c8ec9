package io.headgate.kernel.rolling;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.jpountz.lz4.LZ4BlockOutputStream;

/**
 * Writes the rows of one task and epoch to a hidden file.
 *
 * <p>Big endian, format 1: {@code HGS} and the format, the length of a JSON of {@link Sheet}s and that JSON; then, in LZ4's blocks with
 * checksums, entries that begin with an i32. A number from 0 on is a place, and a row follows: its i32 length and its bytes.
 * {@link #PLACE} defines the next place: the i32 number of its sheet, the i32 length of its path, and the path. {@link #END} has the
 * i64 number of rows. The same number follows behind the blocks, for those who do not read them.
 */
final class StagedWriter {
  static final byte[] MAGIC = {'H', 'G', 'S', 1};
  static final int PLACE = -1;
  static final int END = -2;

  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int BLOCK = 64 * 1024;

  /** A path as a key of a map. */
  private record Path(int sheet, byte[] bytes) {
    @Override public boolean equals(Object other) {
      return other instanceof Path p && sheet == p.sheet && Arrays.equals(bytes, p.bytes);
    }

    @Override public int hashCode() {
      return 31 * Arrays.hashCode(bytes) + sheet;
    }
  }

  private final Place.Making making;
  private final LZ4BlockOutputStream out;
  private final ByteBuffer head = ByteBuffer.allocate(12);
  private final Map<Path, Integer> places = new HashMap<>();
  /** The place of the row before: most rows have the same. */
  private Path last;
  private int lastPlace;
  private long rows;
  private long size;

  StagedWriter(Place.Making making, List<Sheet> sheets) throws IOException {
    this.making = making;
    ArrayNode all = JSON.createArrayNode();
    for (Sheet sheet : sheets) all.add(sheet.toJson());
    byte[] json = all.toString().getBytes(StandardCharsets.UTF_8);
    OutputStream plain = making.out();
    plain.write(MAGIC);
    plain.write(ByteBuffer.allocate(4).putInt(json.length).array());
    plain.write(json);
    out = new LZ4BlockOutputStream(plain, BLOCK);
  }

  /** @param path the folders of a row's partition, with slashes; empty for none */
  void row(int sheet, byte[] path, byte[] bytes, int start, int length) throws IOException {
    int place = place(sheet, path);
    head.clear().putInt(place).putInt(length);
    out.write(head.array(), 0, 8);
    out.write(bytes, start, length);
    rows++;
    size += 8L + length;
  }

  private int place(int sheet, byte[] path) throws IOException {
    if (last != null && last.sheet == sheet && Arrays.equals(last.bytes, path)) return lastPlace;
    Path key = new Path(sheet, path);
    Integer known = places.get(key);
    if (known == null) {
      known = places.size();
      places.put(key, known);
      head.clear().putInt(PLACE).putInt(sheet).putInt(path.length);
      out.write(head.array(), 0, 12);
      out.write(path);
    }
    last = key;
    lastPlace = known;
    return known;
  }

  /** Returns the size of the rows before they are compressed. */
  long size() {
    return size;
  }

  /** Returns whether the file is this one; another try may have been first, with the same rows. */
  boolean publish() throws IOException {
    head.clear().putInt(END).putLong(rows);
    out.write(head.array(), 0, 12);
    // Ends the blocks, and leaves it to the file whether it appears.
    out.finish();
    making.out().write(head.clear().putLong(rows).array(), 0, 8);
    return making.publish();
  }

  void discard() throws IOException {
    making.close();
  }
}
