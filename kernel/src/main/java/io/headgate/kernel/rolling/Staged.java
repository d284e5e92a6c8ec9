package io.headgate.kernel.rolling;

import java.io.Serializable;
import java.util.Comparator;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A hidden file with the rows of one task and epoch.
 *
 * @param bytes the size of its rows; of a file that an earlier attempt has left, its own size, which is less
 * @param since when it was written, in epoch milliseconds
 */
record Staged(int task, long epoch, long bytes, long since) implements Serializable {
  /** The order in which rows are published: those of a task stay in order. */
  static final Comparator<Staged> ORDER = Comparator.comparingInt(Staged::task).thenComparingLong(Staged::epoch);

  private static final Pattern NAME = Pattern.compile("(\\d{10})-(\\d{5})\\.rows");

  static String name(int task, long epoch) {
    return String.format(Locale.ROOT, "%010d-%05d.rows", epoch, task);
  }

  String name() {
    return name(task, epoch);
  }

  /** Returns null for a file of another name. */
  static Staged find(Place.Entry file) {
    Matcher match = NAME.matcher(file.name());
    if (!match.matches()) return null;
    return new Staged(Integer.parseInt(match.group(2)), Long.parseLong(match.group(1)), file.size(), file.modified());
  }
}
