package io.headgate.kernel.rolling;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.headgate.kernel.CodedFailure;
import io.headgate.kernel.testing.CrashPoint;
import java.io.IOException;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;

/**
 * What a lineage has staged in a folder and has published of it: the hidden files below {@code _headgate/LINEAGE}.
 *
 * <ul>
 *   <li>{@code staged/EPOCH-TASK.rows}: rows of a task and epoch, see {@link StagedWriter}
 *   <li>{@code rolls/FIRST.json}: a {@link Roll}, and {@code rolls/FIRST.done} once all of its files are visible. The newest pair
 *       stays: it says up to which epoch rows are published
 *   <li>{@code fence.json}: the lineage must publish no more
 *   <li>{@code making}: files that are being written
 * </ul>
 */
final class Journal implements Serializable {
  static final String ROOT = "_headgate";

  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int FORMAT = 1;
  private static final String ROLL = ".json";
  private static final String DONE = ".done";
  private static final String FENCE = "fence.json";

  final Place place;
  final String lineage;

  Journal(Place place, String lineage) {
    this.place = place;
    this.lineage = lineage;
  }

  /**
   * The newest roll of a lineage.
   *
   * @param roll null before the first one
   * @param outcome null for one that may not be complete
   */
  record Newest(Roll roll, Outcome outcome) {
    /** Returns the last epoch that is published, or is to be; -1 for none. */
    long last() {
      return roll == null ? -1 : roll.last();
    }
  }

  private String folder(String name) {
    return ROOT + "/" + lineage + "/" + name;
  }

  String making() {
    return folder("making");
  }

  String stagedName(String name) {
    return folder("staged/" + name);
  }

  /** Returns all staged files, in the order in which they are published. */
  List<Staged> staged() throws IOException {
    return place.list(folder("staged")).stream().map(Staged::find).filter(Objects::nonNull).sorted(Staged.ORDER).toList();
  }

  Newest newest() throws IOException {
    String roll = null;
    var done = new ArrayList<String>();
    for (Place.Entry file : place.list(folder("rolls"))) {
      if (file.name().endsWith(ROLL)) roll = stem(file.name());
      if (file.name().endsWith(DONE)) done.add(stem(file.name()));
    }
    if (roll == null) return new Newest(null, null);
    Outcome outcome = done.contains(roll) ? Outcome.parse(place.read(rolls(roll + DONE))) : null;
    return new Newest(Roll.parse(place.read(rolls(roll + ROLL)), place.nameOf(rolls(roll + ROLL))), outcome);
  }

  private String rolls(String name) {
    return folder("rolls/" + name);
  }

  private static String stem(String name) {
    return name.substring(0, name.lastIndexOf('.'));
  }

  private static String stem(Roll roll) {
    return String.format(Locale.ROOT, "%010d", roll.first());
  }

  /** Stores a decision; returns the one that holds, which another driver may have made before. */
  Roll decide(Roll roll) throws IOException {
    String name = rolls(stem(roll) + ROLL);
    if (place.create(name, roll.toBytes(), making())) return roll;
    return Roll.parse(place.read(name), place.nameOf(name));
  }

  /** Takes note that all files of a roll are visible, then removes what it was made of. */
  void finish(Roll roll, Outcome outcome) throws IOException {
    place.create(rolls(stem(roll) + DONE), outcome.toBytes(), making());
    CrashPoint.at("folder-done");
    clear(roll.last());
  }

  /** Removes the staged rows up to an epoch, and the records of earlier rolls. */
  void clear(long last) throws IOException {
    for (Staged file : staged()) if (file.epoch() <= last) place.delete(stagedName(file.name()));
    List<String> rolls = place.list(folder("rolls")).stream().map(Place.Entry::name).filter(name -> name.endsWith(ROLL)).toList();
    for (String name : rolls.subList(0, Math.max(0, rolls.size() - 1))) {
      // The mark goes last: without it the roll would be finished again.
      place.delete(rolls(name));
      place.delete(rolls(stem(name) + DONE));
    }
  }

  /** Removes all staged rows, and files that were being written. */
  void clearAll() throws IOException {
    place.delete(folder("staged"));
    place.delete(making());
  }

  /**
   * Keeps the lineage from publishing; drivers look before they publish a file.
   *
   * @param by the run that takes its place
   * @param last the last epoch whose rows are published all the same
   */
  void fence(String by, long last) throws IOException {
    ObjectNode json = JSON.createObjectNode().put("format", FORMAT).put("by", by).put("last", last);
    place.create(folder(FENCE), json.toString().getBytes(StandardCharsets.UTF_8), making());
  }

  /** @param last the last epoch whose rows the other run publishes */
  record Fence(String by, long last) {}

  /** Returns null while the lineage may publish. */
  Fence findFence() throws IOException {
    if (!place.exists(folder(FENCE))) return null;
    JsonNode fence = JSON.readTree(place.read(folder(FENCE)));
    return new Fence(fence.path("by").asText(), fence.path("last").asLong());
  }

  /** @throws CodedFailure where a later run has taken the place of this one */
  void checkFence() throws IOException {
    Fence fence = findFence();
    if (fence == null) return;
    throw new CodedFailure(CodedFailure.FENCED, "cannot publish rows of run " + lineage + " in " + place.nameOf("") + ": run "
        + fence.by() + " has taken its place");
  }
}
