package io.headgate.kernel.postgres;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.headgate.kernel.testing.CrashPoint;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;

/**
 * Reads a table whole, in one snapshot, and writes it down beside what is different from the refresh before.
 *
 * <p>Both are in the order of the keys' bytes, so that comparing them takes no memory.
 */
final class Refresher {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int FETCH = 2_000;
  private static final String DELETED = "{\"$deleted\":true";

  /** A row: the texts of its key, and the whole of it. */
  private record Row(String[] key, String json) {}

  private final PostgresClient client;
  private final TableRead table;
  private final Spool spool;
  private final int pageBytes;
  private long duplicates;
  /** The row behind the one that was returned last. */
  private Row ahead;

  Refresher(PostgresClient client, TableRead table, Spool spool, int pageBytes) {
    this.client = client;
    this.table = table;
    this.spool = spool;
    this.pageBytes = pageBytes;
  }

  /** Returns how many rows of the last refresh had the key of another one. */
  long duplicates() {
    return duplicates;
  }

  /** @param first how many changes are before the first refresh of all */
  Spool.Refresh run(long first) {
    String doing = "read " + table.name();
    try (Connection connection = client.open("headgate:reader", doing)) {
      connection.setAutoCommit(false);
      connection.setReadOnly(true);
      connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
      try (PreparedStatement ask = connection.prepareStatement(table.statement(connection))) {
        ask.setFetchSize(FETCH);
        long at = System.currentTimeMillis();
        try (ResultSet rows = ask.executeQuery()) {
          return write(rows, first, at);
        }
      }
    } catch (SQLException e) {
      throw SqlFailures.of(e, client.where(), doing);
    } catch (IOException e) {
      throw new IllegalStateException("cannot write down a refresh of " + table.name() + ": " + e.getMessage(), e);
    }
  }

  private Spool.Refresh write(ResultSet rows, long first, long at) throws SQLException, IOException {
    Spool.Refresh before = spool.newest();
    long number = before == null ? 1 : before.number() + 1;
    String token = UUID.randomUUID().toString().substring(0, 8);
    var contents = new Pages(number, token, true);
    var changes = new Pages(number, token, false);
    duplicates = 0;
    ahead = null;
    var old = new Old(before);
    Row was = old.next();
    Row now = next(rows, null);
    while (now != null || was != null) {
      int by = now == null ? 1 : was == null ? -1 : compare(now.key, was.key);
      if (by > 0) {
        changes.add(DELETED + (was.json.equals("{}") ? "" : ",") + was.json.substring(1));
      } else {
        contents.add(JSON.writeValueAsString(now.key) + "\t" + now.json);
        if (by < 0 || !now.json.equals(was.json)) changes.add(now.json);
        now = next(rows, now);
      }
      if (by >= 0) was = old.next();
    }
    contents.end();
    changes.end();
    CrashPoint.at("refresh-read");
    var made = new Spool.Refresh(
        number, token, before == null ? first : before.end(), at, contents.pages.size(), changes.pages);
    return spool.add(made);
  }

  /** Returns the next row; of rows with one key the last one. */
  private Row next(ResultSet rows, Row before) throws SQLException {
    Row found = ahead != null ? ahead : read(rows);
    ahead = null;
    if (found == null) return null;
    if (before != null && compare(before.key, found.key) > 0)
      throw new IllegalStateException("the rows of " + table.name() + " do not come in the order of their keys");
    while ((ahead = read(rows)) != null && compare(found.key, ahead.key) == 0) {
      duplicates++;
      found = ahead;
    }
    return found;
  }

  private Row read(ResultSet rows) throws SQLException {
    if (!rows.next()) return null;
    var key = new String[table.key().size()];
    for (int i = 0; i < key.length; i++) key[i] = rows.getString(i + 1);
    return new Row(key, rows.getString(key.length + 1));
  }

  /** Compares as the database orders texts by their bytes in UTF-8; a null comes first. */
  private static int compare(String[] a, String[] b) {
    for (int i = 0; i < a.length; i++) {
      if (a[i] == null || b[i] == null) {
        if (a[i] != b[i]) return a[i] == null ? -1 : 1;
        continue;
      }
      int by = Arrays.compareUnsigned(a[i].getBytes(StandardCharsets.UTF_8), b[i].getBytes(StandardCharsets.UTF_8));
      if (by != 0) return by;
    }
    return 0;
  }

  /** The rows of the refresh before, a page at a time. */
  private final class Old {
    private final Spool.Refresh of;
    private int page;
    private String[] lines = {};
    private int line;

    Old(Spool.Refresh of) {
      this.of = of;
    }

    Row next() throws IOException {
      while (line == lines.length) {
        if (of == null || page == of.contents()) return null;
        byte[] content = SpoolPage.read(spool.files(), spool.rows(of.number(), of.token(), page++));
        lines = content.length == 0 ? new String[0] : new String(content, StandardCharsets.UTF_8).split("\n");
        line = 0;
      }
      String text = lines[line++];
      int tab = text.indexOf('\t');
      return new Row(JSON.readValue(text.substring(0, tab), String[].class), text.substring(tab + 1));
    }
  }

  /** Pages in the making, one at a time. */
  private final class Pages {
    final List<Spool.Page> pages = new ArrayList<>();
    private final long number;
    private final String token;
    private final boolean contents;
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private long rows;

    Pages(long number, String token, boolean contents) {
      this.number = number;
      this.token = token;
      this.contents = contents;
    }

    void add(String line) throws IOException {
      bytes.write(line.getBytes(StandardCharsets.UTF_8));
      bytes.write('\n');
      rows++;
      if (bytes.size() >= pageBytes) end();
    }

    void end() throws IOException {
      if (rows == 0) return;
      int page = pages.size();
      var file = contents ? spool.rows(number, token, page) : spool.changes(number, token, page);
      SpoolPage.write(spool.files(), file, bytes, true);
      pages.add(new Spool.Page(rows, bytes.size()));
      bytes.reset();
      rows = 0;
    }
  }
}
