package io.headgate.kernel.files;

import io.headgate.kernel.gate.Reaches;
import io.headgate.kernel.source.StoredPosition;
import org.apache.spark.sql.connector.read.streaming.Offset;

/**
 * A place in an embedded topic: the next byte to read of the file with a number in the topic's ledger.
 *
 * <p>It names no path, so it holds in a moved folder; it names the topic's id, so a topic that was made anew is noticed.
 * The place behind the last file is byte 0 of the number that comes next.
 */
final class FilesOffset extends Offset implements Reaches {
  private static final int FORMAT = 1;

  final String topic;
  final long file;
  final long at;

  FilesOffset(String topic, long file, long at) {
    this.topic = topic;
    this.file = file;
    this.at = at;
  }

  static FilesOffset parse(String json) {
    return StoredPosition.parse(json, FORMAT, "embedded topics", n -> new FilesOffset(
        n.required("topic").asText(), n.required("file").asLong(), n.required("byte").asLong()));
  }

  @Override public String json() {
    return "{\"format\":" + FORMAT + ",\"topic\":\"" + topic + "\",\"file\":" + file + ",\"byte\":" + at + "}";
  }

  /** A target in a topic that is no more counts as reached: nothing of it is left to read. */
  @Override public boolean reaches(Offset target) {
    FilesOffset t = (FilesOffset) target;
    return !topic.equals(t.topic) || file > t.file || (file == t.file && at >= t.at);
  }
}
