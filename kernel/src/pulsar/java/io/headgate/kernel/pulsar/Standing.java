package io.headgate.kernel.pulsar;

import io.headgate.kernel.pulsar.PulsarOffset.Standpoint;
import io.headgate.kernel.pulsar.TopicCatalog.Topic;
import io.headgate.kernel.source.Finding;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Predicate;

/**
 * A position held against the topics as they are: where it lies today, and what has happened to them since.
 *
 * @param position what was gone is passed over, what is new is at its beginning; a topic that is gone keeps its place
 * @param findings in the order of topics and partitions
 */
record Standing(PulsarOffset position, List<Finding> findings) {
  /**
   * @param before the topics as they were at an earlier look; what they tell may prove that nothing is lost
   * @param own the job's subscription, which may prove it, too
   * @param reads which topics the source reads; the position may know others of earlier days
   */
  static Standing of(
      PulsarOffset from, Map<String, Topic> today, Map<String, Topic> before, OwnSubscription own, Predicate<String> reads) {
    var at = new TreeMap<String, Standpoint>();
    var findings = new ArrayList<Finding>();
    from.topics.forEach((name, place) -> {
      if (!reads.test(name)) return;
      Topic topic = today.get(name);
      at.put(name, topic == null ? gone(name, place, findings) : present(place, topic, before.get(name), own, findings));
    });
    today.forEach((name, topic) -> {
      if (from.topics.containsKey(name)) return;
      at.put(name, beginning(topic));
      findings.add(new Finding(Finding.Kind.TOPIC_ADDED, topic.name().local(),
          "topic '" + topic.name().local() + "' is read from its beginning on"));
    });
    return new Standing(new PulsarOffset(at), findings);
  }

  /** Returns what of a target is left to reach in the topics as they are. */
  static PulsarOffset left(PulsarOffset target, Map<String, Topic> today) {
    var out = new TreeMap<String, Standpoint>();
    target.topics.forEach((name, wanted) -> {
      Topic topic = today.get(name);
      if (topic == null || isOfAnotherShape(wanted, topic)) return;
      var next = new ArrayList<>(wanted.next());
      for (int i = 0; i < next.size(); i++) {
        Ledgers now = topic.partitions().get(i);
        // A partition that cannot be seen for a moment says nothing.
        if (!now.all().isEmpty() && next.get(i).compareTo(now.last()) > 0) next.set(i, now.last());
      }
      out.put(name, new Standpoint(wanted.partitioned(), List.copyOf(next)));
    });
    return new PulsarOffset(out);
  }

  private static boolean isOfAnotherShape(Standpoint at, Topic topic) {
    return at.partitioned() != topic.partitioned() || topic.partitions().size() < at.next().size();
  }

  private static Finding madeAnew(String name, Standpoint at) {
    return new Finding(Finding.Kind.TOPIC_MADE_ANEW, name, "topic '" + name
        + "' was recreated; the old one had been read to " + at.next() + ", and its unread records were deleted");
  }

  private static Standpoint beginning(Topic topic) {
    return new Standpoint(topic.partitioned(), topic.partitions().stream().map(Ledgers::first).toList());
  }

  private static Standpoint gone(String name, Standpoint at, List<Finding> findings) {
    String local = PulsarTopic.parse(name).local();
    findings.add(new Finding(Finding.Kind.TOPIC_GONE, local,
        "topic '" + local + "' was deleted; it had been read to " + at.next()));
    return at;
  }

  private static Standpoint present(
      Standpoint at, Topic topic, Topic before, OwnSubscription own, List<Finding> findings) {
    String name = topic.name().local();
    int had = at.next().size();
    int has = topic.partitions().size();
    if (isOfAnotherShape(at, topic)) {
      findings.add(madeAnew(name, at));
      return beginning(topic);
    }
    if (has > had)
      findings.add(new Finding(Finding.Kind.TOPIC_GREW, name, "topic '" + name + "' has " + has + " partitions, and had " + had
          + "; the new ones are read from their beginning on"));
    var next = new ArrayList<Place>();
    for (int i = 0; i < has; i++) {
      Ledgers now = topic.partitions().get(i);
      Ledgers then = before != null && i < before.partitions().size() ? before.partitions().get(i) : null;
      if (i >= had) {
        next.add(now.first());
        continue;
      }
      Place place = at.next().get(i);
      PulsarTopic plain = topic.plain(i);
      Loss loss = Loss.of(place, now, then, () -> own.keeps(place, plain, now));
      if (!loss.isNone() && !now.all().isEmpty() && place.ledger() > now.last().ledger()) {
        // Numbers of ledgers only grow, unless all that a cluster held is gone.
        findings.add(madeAnew(name, at));
        return beginning(topic);
      }
      if (!loss.isNone())
        findings.add(new Finding(Finding.Kind.DATA_LOST, name,
            "topic '" + name + "' partition " + i + ": " + loss.told(place, now)));
      // What was never written to, or cannot be seen for a moment, says nothing about where to go on.
      next.add(now.all().isEmpty() ? place : now.at(place));
    }
    return new Standpoint(topic.partitioned(), List.copyOf(next));
  }
}
