package io.headgate.kernel.formats.changes;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import io.headgate.kernel.operators.LogPosition;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.Map;

/**
 * Makes the position of a change of what a Debezium connector says of its source.
 *
 * <p>Where a database logs changes before they are committed, the commit comes first in a position: a transaction that was
 * open while a snapshot was taken is newer than the snapshot, though its changes were logged before.
 */
final class SourcePosition {
  // These numbers are in state: they stay.
  private static final int TIME = 1;
  private static final int POSTGRES = 2;
  private static final int BINLOG = 3;
  private static final int LSN = 4;
  private static final int SCN = 5;
  private static final int OPLOG = 6;

  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int LSN_BYTES = 16;

  private final Map<String, String> source;
  private final boolean snapshot;

  private SourcePosition(Map<String, String> source, boolean snapshot) {
    this.source = source;
    this.snapshot = snapshot;
  }

  /**
   * Returns the position, as {@link LogPosition} has it; null where the source says nothing that could be one.
   *
   * @param snapshot whether the row was read in a snapshot
   */
  static byte[] of(Map<String, String> source, boolean snapshot) throws BadRecord {
    return new SourcePosition(source, snapshot).position();
  }

  private byte[] position() throws BadRecord {
    byte[] position = switch (source.getOrDefault("connector", "")) {
      case "postgresql" -> postgres();
      case "mysql", "mariadb" -> binlog();
      case "sqlserver", "db2" -> lsn();
      case "oracle" -> scn();
      case "mongodb" -> oplog();
      default -> null;
    };
    return position == null ? time() : position;
  }

  private byte[] postgres() throws BadRecord {
    Long lsn = number("lsn");
    if (lsn == null) return null;
    Long committed = lastCommit();
    // Before the first commit that a connector sees, the changes of a transaction tell nothing of the snapshot.
    boolean loose = committed == null && !snapshot;
    return of(POSTGRES, loose, database(), 0, place(17).putLong(committed == null ? lsn : committed).putLong(lsn).put(last()));
  }

  /** Returns the first of a sequence such as {@code ["24023119","24023128"]}: the last commit before the change. */
  private Long lastCommit() throws BadRecord {
    String sequence = source.get("sequence");
    if (sequence == null) return null;
    try {
      JsonNode first = JSON.readTree(sequence).path(0);
      return first.isNull() || first.isMissingNode() ? null : parse("sequence", first.asText());
    } catch (JsonProcessingException e) {
      throw wrong("sequence", "a list of two positions", sequence);
    }
  }

  private byte[] binlog() throws BadRecord {
    String file = source.get("file");
    Long pos = number("pos");
    if (file == null || pos == null) return null;
    int dot = file.lastIndexOf('.');
    Long number = dot < 0 ? null : parse("file", file.substring(dot + 1));
    if (number == null) throw wrong("file", "a name such as mysql-bin.000003", file);
    Long server = number("server_id");
    Long row = number("row");
    String log = log() + "/" + file.substring(0, dot);
    return of(BINLOG, false, log, server == null ? 0 : Long.hashCode(server),
        place(25).putLong(number).putLong(pos).put(last()).putLong(row == null ? 0 : row));
  }

  private byte[] lsn() throws BadRecord {
    byte[] commit = hex("commit_lsn");
    if (commit == null) return null;
    byte[] change = hex("change_lsn");
    Long serial = number("event_serial_no");
    return of(LSN, false, database(), 0, place(2 * LSN_BYTES + 9).put(commit).put(last())
        .put(change == null ? new byte[LSN_BYTES] : change).putLong(serial == null ? 0 : serial));
  }

  private byte[] scn() throws BadRecord {
    Long scn = number("scn");
    if (scn == null) return null;
    Long commit = number("commit_scn");
    Long step = number("ssn");
    return of(SCN, commit == null && !snapshot, log(), 0,
        place(25).putLong(commit == null ? scn : commit).putLong(scn).put(last()).putLong(step == null ? 0 : step));
  }

  private byte[] oplog() throws BadRecord {
    Long time = number("ts_ms");
    Long ord = number("ord");
    return time == null || ord == null ? null : of(OPLOG, false, log(), 0, place(17).putLong(time).putLong(ord).put(last()));
  }

  /** A snapshot's rows have the time at which they were read, and later changes that of the database's clock. */
  private byte[] time() throws BadRecord {
    Long time = number("ts_ms");
    return time == null ? null : of(TIME, true, database(), 0, place(9).putLong(time).put(last()));
  }

  private byte[] of(int kind, boolean loose, String log, int server, ByteBuffer place) {
    int flags = (snapshot ? LogPosition.SNAPSHOT : 0) | (loose ? LogPosition.LOOSE : 0);
    return LogPosition.of(kind, flags, log, server, place.array());
  }

  private String log() {
    return source.get("connector") + "/" + source.get("name");
  }

  /** Where each database has a log of its own. */
  private String database() {
    return log() + "/" + source.get("db");
  }

  private static ByteBuffer place(int size) {
    return ByteBuffer.allocate(size);
  }

  /** A snapshot at a position holds nothing of the change there. */
  private byte last() {
    return (byte) (snapshot ? 0 : 1);
  }

  private Long number(String name) throws BadRecord {
    String text = source.get(name);
    return text == null || text.isEmpty() ? null : parse(name, text);
  }

  private static Long parse(String name, String text) throws BadRecord {
    try {
      long number = Long.parseLong(text);
      if (number >= 0) return number;
    } catch (NumberFormatException e) {
      // Told below.
    }
    throw wrong(name, "a positive integer", text);
  }

  /** Returns a position such as {@code 00000027:00000ac0:0002}; null where there is none. */
  private byte[] hex(String name) throws BadRecord {
    String text = source.get(name);
    if (text == null || text.equals("NULL")) return null;
    String digits = text.replace(":", "");
    if (!digits.matches("[0-9a-fA-F]{1,32}")) throw wrong(name, "a position such as 00000027:00000ac0:0002", text);
    byte[] found = new BigInteger(digits, 16).toByteArray();
    byte[] out = new byte[LSN_BYTES];
    // A number that begins with a set bit has a zero byte before it.
    int size = Math.min(found.length, LSN_BYTES);
    System.arraycopy(found, found.length - size, out, LSN_BYTES - size, size);
    return out;
  }

  private static BadRecord wrong(String name, String expected, String found) {
    String shown = found.length() > 40 ? found.substring(0, 40) + "…" : found;
    return new BadRecord(Reason.WRONG_TYPE, "field 'source." + name + "': expected " + expected + ", found '" + shown + "'");
  }
}
