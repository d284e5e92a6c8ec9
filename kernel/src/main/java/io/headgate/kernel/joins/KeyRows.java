package io.headgate.kernel.joins;

import io.headgate.kernel.time.BucketTimer;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.streaming.MapState;

/**
 * The waiting rows of one key: a record with the newest, and pages with those it has no room for.
 *
 * <p>A key with few rows is its record alone. Rows of a side that outgrow it move into pages, oldest first, so that a key with
 * many rows costs an arriving one no more than the record and the pages in which it finds matches.
 *
 * <p>Keys in state: u8 0 and the key for the record; for a page u8 1, the length of the key (i32, big endian), the key, the side
 * (u8) and the page's number (i64, big endian). Their values, little endian, format 1:
 *
 * <pre>
 *  0 u8 format (1)   1 u8 flags (1: moved)   2 u16 schema number   4 i32 form of the columns
 * of a record
 *  8 i64 when the key is due (the greatest number: never)
 * 16 the number of the next page, how many pages there are; of each its number, its side (u8), the least and the greatest time,
 *    whether there are rows without a match (u8) and then their least time
 *    how many rows it has, the rows
 * of a page
 *  8 how many rows it has, the rows
 * </pre>
 */
final class KeyRows {
  static final byte RECORD = 0;
  static final byte PAGE = 1;

  private static final byte FORMAT = 1;
  private static final int MOVED = 1;
  private static final int DUE = 8;
  /** How many bytes of a side's rows a record has room for, and a page. */
  private static final int ROOM = 16 << 10;
  private static final int PAGE_ROOM = 8 << 10;

  private final JoinSpec spec;
  private final JoinSchemas schemas;
  private final MapState<byte[], byte[]> state;
  private final StateBytes reader = new StateBytes();
  private final StateBytes writer = new StateBytes();

  // Of the present key.
  private byte[] key;
  private byte[] entry;
  private boolean stored;
  private long nextPage;
  /** Whether a later moment than {@link #due} was registered before the key was woken. */
  private boolean moved;
  /** When the key is registered to be woken. */
  private long due;
  private final List<JoinPage> pages = new ArrayList<>();
  /** Rows of the record, of the pages that were loaded, and those that were added, by side. */
  private final List<List<JoinRow>> rows = List.of(new ArrayList<>(), new ArrayList<>());

  KeyRows(JoinSpec spec, MapState<byte[], byte[]> state) {
    this.spec = spec;
    this.state = state;
    schemas = spec.schemas();
  }

  /** Returns the name in state of a key's record. */
  static byte[] record(byte[] key) {
    byte[] out = new byte[1 + key.length];
    out[0] = RECORD;
    System.arraycopy(key, 0, out, 1, key.length);
    return out;
  }

  /** Returns the name in state of a page. */
  static byte[] page(byte[] key, int side, long number) {
    return ByteBuffer.allocate(14 + key.length)
        .put(PAGE).putInt(key.length).put(key).put((byte) side).putLong(number).array();
  }

  /** Returns the key of an entry in state. */
  static byte[] keyOf(byte[] entry) {
    ByteBuffer bytes = ByteBuffer.wrap(entry);
    byte[] key = new byte[bytes.get() == RECORD ? entry.length - 1 : bytes.getInt()];
    bytes.get(key);
    return key;
  }

  /** Reads what state has of a key; returns false for nothing. */
  boolean begin(byte[] key) {
    this.key = key;
    entry = record(key);
    return read(state.getValue(entry));
  }

  /** @param record null for a key without rows */
  boolean read(byte[] record) {
    pages.clear();
    rows.get(JoinRow.LEFT).clear();
    rows.get(JoinRow.RIGHT).clear();
    nextPage = 0;
    moved = false;
    due = BucketTimer.NEVER;
    stored = record != null;
    if (stored) readRecord(record);
    return stored;
  }

  private void readRecord(byte[] record) {
    check(record);
    moved = (record[1] & MOVED) != 0;
    reader.point(record, DUE);
    due = reader.getLong();
    nextPage = reader.getCount();
    for (long left = reader.getCount(); left > 0; left--) {
      var page = new JoinPage(reader.getCount(), reader.getByte());
      page.first = reader.getNumber();
      page.last = reader.getNumber();
      page.unmatched = reader.getByte() != 0 ? reader.getNumber() : JoinPage.NONE;
      pages.add(page);
    }
    readRows(record, null);
  }

  private void check(byte[] held) {
    if (held[0] != FORMAT)
      throw new IllegalStateException("STATE_INCOMPATIBLE: cannot read state of " + spec.name() + ": its format is " + held[0]);
    schemas.check(StateBytes.getShort(held, 2), StateBytes.getInt(held, 4));
  }

  /** Reads rows from where the reader points to. */
  private void readRows(byte[] held, JoinPage page) {
    int version = StateBytes.getShort(held, 2);
    int count = (int) reader.getCount();
    if (page != null) page.rows = new ArrayList<>(count);
    long time = 0;
    for (int i = 0; i < count; i++) {
      JoinRow row = JoinRow.read(reader, held, time);
      time = row.time;
      if (version != schemas.current()) schemas.upgrade(row, version);
      row.page = page;
      if (page != null) page.rows.add(row);
      rows.get(row.side).add(row);
    }
  }

  long due() {
    return due;
  }

  /** Returns the rows of a side that are in memory: those of the record, of loaded pages, and those that were added. */
  List<JoinRow> rows(int side) {
    return rows.get(side);
  }

  List<JoinPage> pages() {
    return pages;
  }

  /** Brings those rows of a side into memory that may be within two times. */
  void load(int side, long from, long until) {
    for (JoinPage page : pages) if (page.side == side && page.first <= until && page.last >= from) load(page);
  }

  private void load(JoinPage page) {
    if (page.rows == null) load(page, state.getValue(page(key, page.side, page.number)));
  }

  void load(JoinPage page, byte[] held) {
    check(held);
    reader.point(held, DUE);
    readRows(held, page);
  }

  void add(JoinRow row) {
    rows.get(row.side).add(row);
  }

  void match(JoinRow row) {
    if (row.matched) return;
    row.matched = true;
    if (row.page != null) row.page.changed = true;
  }

  /** Removes the rows that nothing can match at a watermark, and returns those of them that have no match, left ones first. */
  List<JoinRow> expire(long watermark) {
    var lonely = new ArrayList<JoinRow>();
    for (int i = pages.size() - 1; i >= 0; i--) {
      JoinPage page = pages.get(i);
      boolean lasting = spec.expiry(page.side, page.last) > watermark;
      if (page.unmatched != JoinPage.NONE && spec.expiry(page.side, page.unmatched) <= watermark) load(page);
      else if (!lasting && page.rows == null) drop(page);
    }
    for (List<JoinRow> side : rows) {
      side.removeIf(row -> {
        if (spec.expiry(row.side, row.time) > watermark) return false;
        if (!row.matched) lonely.add(row);
        if (row.page != null) row.page.changed = row.page.rows.remove(row);
        return true;
      });
    }
    lonely.sort((a, b) -> a.side != b.side ? Integer.compare(a.side, b.side) : JoinRow.BY_TIME.compare(a, b));
    return lonely;
  }

  private void drop(JoinPage page) {
    pages.remove(page);
    state.removeKey(page(key, page.side, page.number));
  }

  /**
   * Writes what is to be kept.
   *
   * @param woken whether the key's registered moment is over
   * @param watermark when the key is woken is above it
   * @return when the key is to be registered anew; {@link BucketTimer#NEVER} if it need not be
   */
  long save(boolean woken, long watermark) {
    for (int i = pages.size() - 1; i >= 0; i--) {
      JoinPage page = pages.get(i);
      if (page.changed) write(page);
    }
    spill();
    boolean empty = pages.isEmpty() && !hasInline();
    if (empty) {
      if (stored) state.removeKey(entry);
      return BucketTimer.NEVER;
    }
    long registered = register(woken, watermark);
    state.updateValue(entry, writeRecord());
    return registered;
  }

  private long register(boolean woken, long watermark) {
    // The bucket is about to be woken, and the key with it.
    if (!woken && due <= watermark) return BucketTimer.NEVER;
    long next = Math.max(next(), watermark + 1);
    if (woken) moved = false;
    if (!woken && due != BucketTimer.NEVER) {
      // A later moment saves a useless wake. Once is enough: each leaves an entry behind that is of no more use.
      if (next == due || next > due && (moved || !pages.isEmpty())) return BucketTimer.NEVER;
      moved |= next > due;
    }
    due = next;
    return next;
  }

  /** Finds when the key is due by the present bounds, after another query held it; returns that. */
  long takeOver(long watermark) {
    due = BucketTimer.NEVER;
    return save(true, watermark);
  }

  /** Returns when the first row without a match goes; if all have one, when the last row does, and all go together. */
  private long next() {
    long first = BucketTimer.NEVER;
    long last = Long.MIN_VALUE;
    for (JoinPage page : pages) {
      if (page.unmatched != JoinPage.NONE) first = Math.min(first, spec.expiry(page.side, page.unmatched));
      last = Math.max(last, spec.expiry(page.side, page.last));
    }
    for (List<JoinRow> side : rows) {
      for (JoinRow row : side) {
        if (row.page != null) continue;
        long expiry = spec.expiry(row.side, row.time);
        if (!row.matched) first = Math.min(first, expiry);
        last = Math.max(last, expiry);
      }
    }
    return first == BucketTimer.NEVER ? last : first;
  }

  private boolean hasInline() {
    for (List<JoinRow> side : rows) for (JoinRow row : side) if (row.page == null) return true;
    return false;
  }

  private void write(JoinPage page) {
    if (page.rows.isEmpty()) {
      drop(page);
      return;
    }
    page.measure();
    head(0);
    writeRows(page.rows);
    state.updateValue(page(key, page.side, page.number), writer.toBytes());
    page.changed = false;
  }

  private void head(int flags) {
    writer.clear();
    writer.putByte(FORMAT);
    writer.putByte(flags);
    writer.putShort(schemas.current());
    writer.putInt(schemas.form());
  }

  private void writeRows(List<JoinRow> list) {
    writer.putCount(list.size());
    long time = 0;
    for (JoinRow row : list) {
      row.write(writer, time);
      time = row.time;
    }
  }

  private byte[] writeRecord() {
    var inline = new ArrayList<JoinRow>();
    for (List<JoinRow> side : rows) for (JoinRow row : side) if (row.page == null) inline.add(row);
    head(moved ? MOVED : 0);
    writer.putLong(due);
    writer.putCount(nextPage);
    writer.putCount(pages.size());
    for (JoinPage page : pages) {
      writer.putCount(page.number);
      writer.putByte(page.side);
      writer.putNumber(page.first);
      writer.putNumber(page.last);
      writer.putByte(page.unmatched == JoinPage.NONE ? 0 : 1);
      if (page.unmatched != JoinPage.NONE) writer.putNumber(page.unmatched);
    }
    writeRows(inline);
    return writer.toBytes();
  }

  /** Moves the oldest rows of a record that is too large into pages. */
  private void spill() {
    for (List<JoinRow> side : rows) {
      long size = 0;
      for (JoinRow row : side) if (row.page == null) size += row.size();
      if (size <= ROOM) continue;
      var inline = new ArrayList<JoinRow>();
      for (JoinRow row : side) if (row.page == null) inline.add(row);
      inline.sort(JoinRow.BY_TIME);
      int from = 0;
      while (size >= PAGE_ROOM) {
        var page = new JoinPage(nextPage++, inline.get(from).side);
        page.rows = new ArrayList<>();
        for (int room = 0; from < inline.size() && room < PAGE_ROOM; from++) {
          JoinRow row = inline.get(from);
          row.page = page;
          page.rows.add(row);
          room += row.size();
          size -= row.size();
        }
        pages.add(page);
        write(page);
      }
    }
  }
}
