package io.headgate.kernel.kafka;

import java.io.Serializable;
import java.util.Collection;
import java.util.Map;

/**
 * What a lineage had written to a cluster when a query of it began: the last epoch of all, and how it was shared out.
 *
 * <p>The epoch may be half written. Its rows can be told from those that are missing only by a query that shares them out
 * over tasks and clients in the same way.
 *
 * @param marks by id
 * @param epoch -1 where nothing was written
 * @param tasks how many wrote the last epoch; 0 where it is of another client
 * @param moved a topic that the last epoch was written to, by a client that no longer does, or now does; null for none
 */
record Written(Map<String, Mark> marks, long epoch, int tasks, String moved) implements Serializable {
  static final Written NOTHING = new Written(Map.of(), -1, 0, null);

  /** @param slot which of the query's clients on this cluster is asking, and the topics it writes to */
  static Written of(Map<String, Mark> marks, int slot, Collection<String> topics) {
    long last = marks.values().stream().mapToLong(Mark::epoch).max().orElse(-1);
    int tasks = 0;
    String moved = null;
    for (var each : marks.entrySet()) {
      Mark mark = each.getValue();
      if (mark.epoch() != last) continue;
      boolean mine = Lineage.slot(each.getKey()) == slot;
      if (mine) tasks = mark.tasks();
      if (mine != topics.contains(mark.topic())) moved = mark.topic();
    }
    return new Written(Map.copyOf(marks), last, tasks, moved);
  }

  /** Throws where an epoch cannot be written so that each of its rows is there once. */
  void check(Lineage lineage, int now, long asked) {
    if (asked == epoch && moved != null)
      throw new KafkaFailure(Failures.CHANGED, "cannot finish batch " + asked + " of run " + lineage.name()
          + ": the outputs have changed since it was started: topic '" + moved
          + "' has other client options, or is not an output any more");
    check(lineage, epoch, tasks, now, asked);
  }

  /**
   * Throws where an epoch does not go with one that was written.
   *
   * @param then how many tasks wrote it; 0 where that does not matter
   */
  static void check(Lineage lineage, long written, int then, int now, long asked) {
    if (asked < written)
      throw new KafkaFailure(Failures.AHEAD, "cannot write batch " + asked + " of run " + lineage.name()
          + ": its outputs hold batch " + written + ": the checkpoint was reset to an older one, or another job writes under its name");
    if (asked == written && then != 0 && then != now)
      throw new KafkaFailure(Failures.CHANGED, "cannot finish batch " + asked + " of run " + lineage.name()
          + ": it was started with " + then + " tasks, and has " + now + " now, which changes the distribution of its rows");
  }
}
