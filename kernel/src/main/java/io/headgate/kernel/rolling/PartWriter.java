package io.headgate.kernel.rolling;

import io.headgate.kernel.testing.CrashPoint;
import java.io.Closeable;
import java.io.IOException;
import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/**
 * Publishes one part of a roll: makes a visible file for each partition, one after the other, and skips those that are there.
 *
 * <p>Rows of the first few partitions go straight to their files. Those of all others wait in a {@link Spool}, so that neither memory nor
 * open files grow with the number of partitions.
 */
final class PartWriter implements Closeable {
  private static final int OPEN = 4;

  /**
   * What a task is to do.
   *
   * @param journal of the lineage whose rows they are
   * @param guard of the lineage that publishes them, which may be a later one
   * @param limit the last epoch whose rows are published
   */
  record Order(Journal journal, Journal guard, Roll roll, int part, List<Staged> files, long limit) implements Serializable {
    Outcome carryOut() throws IOException {
      try (var writer = new PartWriter(this)) {
        return writer.write();
      }
    }
  }

  /** A file in the making; it has no writer if the visible one is there. */
  private record Open(Path file, VisibleFile writer) {}

  private final Order order;
  private final Path work;
  /** The partitions in the order in which they came, by number. */
  private final Map<StagedReader.Section, Integer> groups = new LinkedHashMap<>();
  private final Map<Integer, Open> open = new HashMap<>();
  /** The number of each sheet: files of one partition in several formats have several names. */
  private final List<Sheet> sheets = new ArrayList<>();
  private Spool spool;
  private Outcome outcome = Outcome.NONE;

  private PartWriter(Order order) throws IOException {
    this.order = order;
    work = order.guard.place.work(order.guard.making());
  }

  private Outcome write() throws IOException {
    for (Staged file : order.files) if (file.epoch() <= order.limit) read(file);
    for (var group : groups.entrySet()) {
      Open made = open.remove(group.getValue());
      if (made != null) publish(made, name(group.getKey()));
    }
    // In the order of their names, so that a crash leaves as few as possible undone for whoever looks at the folder.
    var rest = groups.entrySet().stream().filter(group -> group.getValue() >= OPEN)
        .sorted(Comparator.comparing(group -> group.getKey().path())).toList();
    for (var group : rest) {
      Open made = make(group.getKey());
      open.put(group.getValue(), made);
      if (made.writer != null) spool.read(group.getValue(), made.writer::row);
      open.remove(group.getValue());
      publish(made, name(group.getKey()));
    }
    return outcome;
  }

  private void read(Staged file) throws IOException {
    long rows = 0;
    long size = 0;
    try (StagedReader staged = StagedReader.open(order.journal.place, order.journal.stagedName(file.name()))) {
      StagedReader.Section last = null;
      int group = 0;
      for (; staged.next(); rows++) {
        size += 8L + staged.length();
        if (staged.section() != last) {
          last = staged.section();
          group = group(last);
        }
        if (group >= OPEN) {
          spool.add(group, staged.bytes(), staged.length());
        } else {
          VisibleFile writer = open.get(group).writer;
          if (writer != null) writer.row(staged.bytes(), 0, staged.length());
        }
      }
    }
    outcome = outcome.plus(new Outcome(size, rows, 0, 0));
  }

  private int group(StagedReader.Section section) throws IOException {
    Integer known = groups.get(section);
    if (known != null) return known;
    int group = groups.size();
    groups.put(section, group);
    if (!sheets.contains(section.sheet())) sheets.add(section.sheet());
    if (group < OPEN) open.put(group, make(section));
    else if (spool == null) spool = new Spool(work.resolve(UUID.randomUUID() + ".spool"));
    return group;
  }

  private String name(StagedReader.Section section) {
    int sheet = sheets.indexOf(section.sheet());
    String name = order.roll.fileName(order.journal.lineage, order.part) + (sheet == 0 ? "" : "-" + sheet) + section.sheet().ending();
    return section.path().isEmpty() ? name : section.path() + "/" + name;
  }

  private Open make(StagedReader.Section section) throws IOException {
    if (order.journal.place.exists(name(section))) return new Open(null, null);
    Path file = work.resolve(UUID.randomUUID().toString());
    return new Open(file, VisibleFile.open(section.sheet(), file));
  }

  private void publish(Open made, String name) throws IOException {
    Place place = order.journal.place;
    if (made.writer != null) {
      long size;
      try {
        made.writer.close();
        size = Files.size(made.file);
        order.guard.checkFence();
        place.publish(made.file, name);
      } finally {
        Files.deleteIfExists(made.file);
      }
      outcome = outcome.plus(new Outcome(0, 0, 1, size));
      CrashPoint.at("folder-file-published");
    } else {
      outcome = outcome.plus(new Outcome(0, 0, 1, Math.max(0, place.size(name))));
    }
  }

  /** Gives up files that were not published. */
  @Override public void close() throws IOException {
    for (Open made : open.values()) {
      if (made.writer == null) continue;
      try {
        made.writer.close();
      } catch (IOException | RuntimeException e) {
        // What is given up may be incomplete: the failure before this one is the one to tell.
      }
      Files.deleteIfExists(made.file);
    }
    open.clear();
    if (spool != null) spool.close();
  }
}
