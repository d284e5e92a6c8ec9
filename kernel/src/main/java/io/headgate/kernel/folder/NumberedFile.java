package io.headgate.kernel.folder;

import java.io.Serializable;

/**
 * A file of a folder with its number in the ledger, as it was when it was numbered.
 *
 * @param path relative to the folder, with slashes
 * @param modified when it was last changed, in epoch milliseconds
 * @param tag the store's tag of its content; null where it has none
 * @param start the bytes of all files before it, and what opening them counts for: the folder read as one long file
 */
record NumberedFile(long number, String path, long size, long modified, String tag, long start) implements Serializable {
  /** What opening a file counts for in a batch: a batch of tiny files must end as well. */
  static final long OPENING = 16 * 1024;

  long end() {
    return start + size + OPENING;
  }

  /** Returns whether the file is still the one that was numbered; where there is a tag, it decides. */
  boolean isSame(long size, long modified, String tag) {
    if (size != this.size) return false;
    return this.tag != null && tag != null ? this.tag.equals(tag) : modified == this.modified;
  }
}
