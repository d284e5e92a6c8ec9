package io.headgate.kernel.rolling;

import io.headgate.kernel.testing.CrashPoint;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaSparkContext;

/** Publishes staged rows, on the driver: decides which, and has Spark's tasks make the files. */
final class Rolling {
  private final Journal own;
  private final SparkContext spark;

  /** @param own the journal of the lineage that publishes */
  Rolling(Journal own, SparkContext spark) {
    this.own = own;
    this.spark = spark;
  }

  /** Publishes epochs that are all committed; returns the decision that held. */
  Journal.Newest roll(Roll wanted) throws IOException {
    Roll roll = own.decide(wanted);
    CrashPoint.at("folder-decided");
    // Behind the decision: a run that takes over looks for decisions once it has put up the fence.
    own.checkFence();
    return new Journal.Newest(roll, complete(own, roll, Long.MAX_VALUE));
  }

  /** Finishes what an earlier attempt of this lineage began; returns the last roll. */
  Journal.Newest recover() throws IOException {
    own.checkFence();
    own.place.delete(own.making());
    Journal.Newest newest = own.newest();
    if (newest.roll() == null) return newest;
    if (newest.outcome() == null) return new Journal.Newest(newest.roll(), complete(own, newest.roll(), Long.MAX_VALUE));
    own.clear(newest.last());
    return newest;
  }

  /**
   * Takes the place of another lineage: it publishes no more, and what it has staged up to an epoch is published here.
   *
   * <p>A roll that it has decided on, and may be publishing right now, is finished under the same names.
   */
  void takeOver(String lineage, long upTo) throws IOException {
    var journal = new Journal(own.place, lineage);
    journal.fence(own.lineage, upTo);
    CrashPoint.at("folder-fenced");
    long last = Math.min(upTo, journal.findFence().last());
    Journal.Newest newest = journal.newest();
    if (newest.roll() != null && newest.outcome() == null) complete(journal, newest.roll(), last);
    List<Staged> left = journal.staged().stream().filter(file -> file.epoch() > newest.last() && file.epoch() <= last).toList();
    if (!left.isEmpty()) {
      Roll roll = journal.decide(Roll.of(newest.last() + 1, last, left, 1));
      own.checkFence();
      complete(journal, roll, last);
    }
    journal.clearAll();
  }

  /** Finishes every takeover that this lineage has begun. */
  void finishTakeovers() throws IOException {
    for (String lineage : own.place.folders(Journal.ROOT)) {
      if (lineage.equals(own.lineage)) continue;
      Journal.Fence fence = new Journal(own.place, lineage).findFence();
      if (fence != null && fence.by().equals(own.lineage)) takeOver(lineage, fence.last());
    }
  }

  private Outcome complete(Journal journal, Roll roll, long limit) throws IOException {
    List<Staged> staged = journal.staged();
    var orders = new ArrayList<PartWriter.Order>();
    for (int part = 0; part < roll.parts().size(); part++) {
      List<Staged> files = roll.filesOf(part, staged, journal.place.nameOf(""));
      orders.add(new PartWriter.Order(journal, own, roll, part, files, limit));
    }
    Outcome outcome = carryOut(orders);
    CrashPoint.at("folder-published");
    journal.finish(roll, outcome);
    return outcome;
  }

  /** Returns the name of the Spark jobs that publish the rows of a lineage. */
  static String group(Journal journal) {
    return "headgate-folder-" + journal.lineage + journal.place.nameOf("");
  }

  private Outcome carryOut(List<PartWriter.Order> orders) {
    spark.setJobGroup(group(own), "publish files in " + own.place.nameOf(""), false);
    Outcome sum = Outcome.NONE;
    List<Outcome> parts = new JavaSparkContext(spark).parallelize(orders, orders.size()).map(PartWriter.Order::carryOut).collect();
    for (Outcome part : parts) sum = sum.plus(part);
    return sum;
  }
}
