package io.headgate.kernel.folder;

import java.io.Serializable;
import java.util.List;
import org.apache.spark.sql.connector.read.InputPartition;

/**
 * What one task reads of a folder.
 *
 * @param lane names the ledger as one ordered sequence
 */
record FolderSplit(List<Range> ranges, int lane) implements InputPartition {
  /**
   * A part of a file. Lines, row groups, stripes and blocks belong to the part that they begin in; a file that cannot be cut
   * belongs to the part with its first byte.
   */
  record Range(NumberedFile file, long from, long to) implements Serializable {}
}
