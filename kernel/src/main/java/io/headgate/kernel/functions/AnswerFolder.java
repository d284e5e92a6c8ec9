package io.headgate.kernel.functions;

import java.io.IOException;
import java.util.List;

/** The place of all recorded answers of a run. Names are relative to it, with slashes; a file is never replaced. */
interface AnswerFolder {
  /** @param place a path, or the address of a place on an object store */
  static AnswerFolder of(String place) throws IOException {
    return place.contains("://") ? new StoredAnswerFolder(place) : new LocalAnswerFolder(place);
  }

  /** Returns the names in a folder, sorted; none if it does not exist. */
  List<String> list(String folder) throws IOException;

  byte[] read(String file) throws IOException;

  /** Writes a file; returns false, and leaves the one that is there, if there is one of this name. */
  boolean create(String file, byte[] content) throws IOException;

  /** Removes a folder with its files; it may be gone. */
  void remove(String folder) throws IOException;

  /** Returns the full name of a file, for messages. */
  String nameOf(String file);
}
