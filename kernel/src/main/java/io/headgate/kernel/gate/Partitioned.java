package io.headgate.kernel.gate;

import java.util.Map;
import org.apache.spark.sql.connector.read.streaming.Offset;

/** A stream that can tell how far each of its partitions has been read. */
public interface Partitioned {
  /** How far a batch reads a partition, as of the last look at it. */
  enum Progress {
    /** It is not read before the batch after this one, and was not read before under its name. */
    NEW,
    /** It holds no record. */
    EMPTY,
    /** It was read to its end before the batch. */
    READ,
    /** The batch reads it to its end. */
    READING,
    /** Records are left behind the batch. */
    UNREAD;

    /** @param begun whether the batch's start knows the partition; {@code moves} whether the batch reads any of it */
    public static Progress of(boolean begun, boolean moves, boolean left, boolean empty) {
      if (!begun) return NEW;
      if (left) return UNREAD;
      if (moves) return READING;
      return empty ? EMPTY : READ;
    }
  }

  /**
   * Returns how far a batch reads each partition there is, by the partition's name.
   *
   * @param start where the batch starts, as it was logged
   * @param end where it ends
   */
  Map<String, Progress> partitions(Offset start, Offset end);

  /** Returns what a partition of a topic is called. */
  static String name(String topic, int partition) {
    return topic + "-" + partition;
  }
}
