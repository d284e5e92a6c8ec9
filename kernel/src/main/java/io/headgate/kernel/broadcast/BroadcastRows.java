package io.headgate.kernel.broadcast;

import io.headgate.kernel.operators.SchemaHistory;
import io.headgate.kernel.operators.TableRow;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.Collection;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import scala.Tuple2;
import scala.collection.Iterator;

/** The rows of a broadcast table in memory, by key, each as state has it in the present schema. For one thread at a time. */
public final class BroadcastRows {
  /** Null until they are read. */
  private TreeMap<byte[], Entry> byKey;
  private byte[] version;
  private Object summary;

  /** A row, and what an operator made of it. */
  public static final class Entry {
    private final byte[] held;
    Object made;

    private Entry(byte[] held) {
      this.held = held;
    }

    /** Points at the row. */
    public void readInto(UnsafeRow row) {
      int body = TableRow.body(held);
      row.pointTo(held, Platform.BYTE_ARRAY_OFFSET + body, held.length - body);
    }
  }

  boolean isRead() {
    return byKey != null;
  }

  void read(Iterator<Tuple2<byte[], byte[]>> entries, SchemaHistory history) {
    byKey = new TreeMap<>(Arrays::compareUnsigned);
    while (entries.hasNext()) {
      Tuple2<byte[], byte[]> entry = entries.next();
      put(entry._1(), entry._2(), history);
    }
  }

  /** Takes over what state holds of a key from now on. */
  void put(byte[] key, byte[] held, SchemaHistory history) {
    version = null;
    summary = null;
    if (byKey == null) return;
    if (TableRow.isDeleted(held)) byKey.remove(key);
    else byKey.put(key, new Entry(history.present(held)));
  }

  /** Forgets them, so that they are read again. */
  void forget() {
    byKey = null;
    version = null;
    summary = null;
  }

  /** Returns the rows, ordered by the bytes of their keys. */
  public Collection<Entry> all() {
    return byKey.values();
  }

  /** Returns a sum of all rows: the same rows have the same, in every task and attempt. */
  public byte[] version() {
    if (version == null) {
      MessageDigest sum = sha256();
      byKey.forEach((key, row) -> {
        add(sum, key, 0);
        add(sum, row.held, TableRow.body(row.held));
      });
      version = sum.digest();
    }
    return version;
  }

  private static void add(MessageDigest sum, byte[] bytes, int from) {
    int length = bytes.length - from;
    for (int shift = 24; shift >= 0; shift -= 8) sum.update((byte) (length >>> shift));
    sum.update(bytes, from, length);
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Returns what an operator made of all rows as they are; null once they have changed. */
  Object summary() {
    return summary;
  }

  void summarize(Object of) {
    summary = of;
  }
}
