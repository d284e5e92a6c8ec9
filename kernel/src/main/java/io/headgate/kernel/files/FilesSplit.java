package io.headgate.kernel.files;

import java.io.Serializable;
import java.util.List;
import org.apache.spark.sql.connector.read.InputPartition;

/**
 * What one task reads of a topic: the lines that begin in these ranges.
 *
 * @param lane names the topic as one ordered sequence
 */
record FilesSplit(List<Range> ranges, String topic, int lane, long maxRecord) implements InputPartition {
  /**
   * @param start the file's place in the topic read as one long file
   * @param from the first byte of the range
   * @param to the byte behind the range; a line that begins before it is read to its end
   */
  record Range(String path, int number, long start, long size, long from, long to, long seen) implements Serializable {}
}
