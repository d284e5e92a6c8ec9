package io.headgate.kernel.functions;

import io.headgate.kernel.testing.CrashPoint;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * The answers of one function's calls for one task of a batch: those that an earlier attempt recorded, and new ones.
 *
 * <p>A folder for each batch has files named by the task and the rows in them. Answers are found by their row, so that an
 * attempt finds them all the same if its tasks have other rows. The folder lies beside the checkpoint: a restored job has its own.
 */
final class RecordedAnswers {
  private static final String SUFFIX = ".answers";

  private final AnswerFolder calls;
  /** The batch's folder among all answers, with a slash behind it. */
  private final String folder;
  private final String prefix;
  /** Those of this task, and those of a stage with other tasks once a row was not among them; the oldest of a row first. */
  private final Map<Answer.Identity, Deque<Found>> own = new HashMap<>();
  private Map<Answer.Identity, Deque<Found>> others;
  private int round;
  private int added;

  /**
   * An answer and its place among all that were recorded.
   *
   * @param order answers of a task that ended earlier have a smaller one
   */
  record Found(Answer answer, long order) {}

  /** @param calls the place of all functions' answers */
  RecordedAnswers(AnswerFolder calls, String uid, Epoch epoch) throws IOException {
    this.calls = calls;
    folder = uid + "/" + epoch.number() + "/";
    prefix = String.format(Locale.ROOT, "%05d-%05d-", epoch.partition(), epoch.partitions());
    for (String file : files()) {
      if (!isOwn(file)) continue;
      add(read(file), own);
      round++;
    }
  }

  /** Removes the answers of batches before this one: they have committed, and are never repeated. */
  static void prune(AnswerFolder calls, String uid, long batch) throws IOException {
    for (String old : calls.list(uid))
      if (old.matches("\\d+") && Long.parseLong(old) < batch) calls.remove(uid + "/" + old);
  }

  /** Returns the recorded answer of a row, each only once; null if there is none. */
  Found find(Answer.Identity of) throws IOException {
    Found found = poll(own, of);
    if (found != null) return found;
    if (others == null) {
      others = new HashMap<>();
      for (String file : files()) if (isOfOtherTasks(file)) add(read(file), others);
    }
    return poll(others, of);
  }

  /**
   * Records answers; {@link #find} returns them from now on.
   *
   * <p>If another attempt of the task has recorded answers for these rows in the meantime, it returns those.
   *
   * @param answers in the order in which the calls ended
   */
  void record(List<Answer> answers) throws IOException {
    String file = String.format(Locale.ROOT, "%s%06d-%s%s", prefix, round++, digest(answers), SUFFIX);
    boolean mine = AnswerFile.write(calls, folder + file, answers);
    add(mine ? answers : read(file), own);
    CrashPoint.at("answers-recorded");
  }

  private void add(List<Answer> answers, Map<Answer.Identity, Deque<Found>> into) {
    long first = (long) added++ << Integer.SIZE;
    for (Answer answer : answers) into.computeIfAbsent(answer.of(), of -> new ArrayDeque<>()).add(new Found(answer, first++));
  }

  private static Found poll(Map<Answer.Identity, Deque<Found>> from, Answer.Identity of) {
    Deque<Found> left = from.get(of);
    return left == null ? null : left.poll();
  }

  private boolean isOwn(String file) {
    return file.startsWith(prefix);
  }

  /** Returns whether a file was written when the stage had another number of tasks; with the same, each has the same rows. */
  private boolean isOfOtherTasks(String file) {
    return !file.substring(6).startsWith(prefix.substring(6));
  }

  private List<String> files() throws IOException {
    return calls.list(folder).stream().filter(file -> file.endsWith(SUFFIX)).toList();
  }

  private List<Answer> read(String file) throws IOException {
    return AnswerFile.read(calls, folder + file);
  }

  /** Returns the same for the same rows, in whatever order their calls ended. */
  private static String digest(List<Answer> answers) {
    ByteBuffer rows = ByteBuffer.allocate(answers.size() * Answer.Identity.BYTES);
    answers.stream().map(Answer::of)
        .sorted(Comparator.comparingLong(Answer.Identity::high).thenComparingLong(Answer.Identity::low))
        .forEach(of -> of.write(rows));
    return HexFormat.of().formatHex(Answer.sha256().digest(rows.array()), 0, 8);
  }
}
