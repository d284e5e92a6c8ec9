package io.headgate.kernel.rolling;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.headgate.kernel.CodedFailure;
import java.io.IOException;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * The decision which staged rows become which visible files: those of epochs first to last, of all tasks, in parts.
 *
 * <p>It is stored before anything of it is published, and never changed: whoever finishes it, after whatever crash, makes the same
 * files.
 */
record Roll(long first, long last, List<Part> parts) implements Serializable {
  private static final int FORMAT = 1;
  private static final ObjectMapper JSON = new ObjectMapper();

  /** The staged files from one task and epoch to another, in {@link Staged#ORDER}, and how many they are. */
  record Part(int fromTask, long fromEpoch, int toTask, long toEpoch, int files) implements Serializable {
    boolean has(Staged file) {
      boolean begun = file.task() > fromTask || file.task() == fromTask && file.epoch() >= fromEpoch;
      return begun && (file.task() < toTask || file.task() == toTask && file.epoch() <= toEpoch);
    }
  }

  boolean has(long epoch) {
    return epoch >= first && epoch <= last;
  }

  /**
   * Cuts staged files into parts of about the same size.
   *
   * @param staged the files of the epochs, in order
   * @param count how many parts there are at most
   */
  static Roll of(long first, long last, List<Staged> staged, int count) {
    long left = staged.stream().mapToLong(Staged::bytes).sum();
    var parts = new ArrayList<Part>();
    int from = 0;
    for (int made = 0; from < staged.size(); made++) {
      long wanted = left / Math.max(1, count - made);
      long sum = staged.get(from).bytes();
      int to = from + 1;
      // The file that crosses the border goes to the side where more of it would be.
      while (to < staged.size() && (made >= count - 1 || sum + staged.get(to).bytes() / 2 <= wanted)) sum += staged.get(to++).bytes();
      Staged begin = staged.get(from);
      Staged end = staged.get(to - 1);
      parts.add(new Part(begin.task(), begin.epoch(), end.task(), end.epoch(), to - from));
      left -= sum;
      from = to;
    }
    return new Roll(first, last, parts);
  }

  /** Returns the files of a part among those that are staged; they must all be there. */
  List<Staged> filesOf(int part, List<Staged> staged, String where) {
    Part of = parts.get(part);
    List<Staged> out = staged.stream().filter(file -> has(file.epoch()) && of.has(file)).sorted(Staged.ORDER).toList();
    if (out.size() != of.files)
      throw new CodedFailure("STAGED_LOST", "cannot publish epochs " + first + " to " + last + " in " + where + ": " + of.files
          + " staged files were to be published, and " + out.size() + " are there");
    return out;
  }

  byte[] toBytes() {
    ObjectNode json = JSON.createObjectNode().put("format", FORMAT).put("first", first).put("last", last);
    ArrayNode all = json.putArray("parts");
    for (Part part : parts) {
      ObjectNode one = all.addObject();
      one.putArray("from").add(part.fromTask).add(part.fromEpoch);
      one.putArray("to").add(part.toTask).add(part.toEpoch);
      one.put("files", part.files);
    }
    return json.toString().getBytes(StandardCharsets.UTF_8);
  }

  static Roll parse(byte[] json, String name) throws IOException {
    JsonNode read = JSON.readTree(json);
    if (read.path("format").asInt() != FORMAT)
      throw new CodedFailure("STAGED_CORRUPTED", "cannot read " + name + ": it is of format " + read.path("format").asText("none")
          + ", and this release reads " + FORMAT);
    var parts = new ArrayList<Part>();
    for (JsonNode part : read.get("parts")) {
      JsonNode from = part.get("from");
      JsonNode to = part.get("to");
      parts.add(new Part(from.get(0).asInt(), from.get(1).asLong(), to.get(0).asInt(), to.get(1).asLong(), part.get("files").asInt()));
    }
    return new Roll(read.get("first").asLong(), read.get("last").asLong(), parts);
  }

  /** Returns the name of a visible file, without its end; it sorts by epochs. */
  String fileName(String lineage, int part) {
    return String.format(Locale.ROOT, "%s-%010d-%010d-%05d", lineage, first, last, part);
  }
}
