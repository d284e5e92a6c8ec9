package io.headgate.kernel.pulsar;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * What topics there are, and what each of their partitions holds; serves the query's thread.
 *
 * <p>What partitions hold is asked each time, all of it at once. Topics, and how many partitions they have, change seldom and
 * are asked every 2 s.
 */
final class TopicCatalog {
  /**
   * A topic as it is.
   *
   * @param partitioned whether it has partitions; a plain topic has one
   * @param partitions what each of them holds
   */
  record Topic(PulsarTopic name, boolean partitioned, List<Ledgers> partitions) {
    /** Returns the plain topic that holds a partition. */
    PulsarTopic plain(int partition) {
      return partitioned ? name.partition(partition) : name;
    }
  }

  /** @param partitions 0 for a plain topic */
  private record Shape(PulsarTopic name, int partitions) {
    private List<PulsarTopic> plain() {
      if (partitions == 0) return List.of(name);
      var out = new ArrayList<PulsarTopic>();
      for (int i = 0; i < partitions; i++) out.add(name.partition(i));
      return out;
    }
  }

  private static final long ASK_EVERY_NANOS = 2_000_000_000L;
  /** Spark asks twice before a batch, at once: where it ends, and how far to read. */
  private static final long SAME_LOOK_NANOS = 10_000_000L;

  private final SourceOptions options;
  private final AdminApi admin;
  private final ReadLimits limits;
  private List<Shape> shapes = List.of();
  private SortedMap<String, Topic> topics = new TreeMap<>();
  private long shapedAt;
  private long lookedAt;
  /** For how long a look is as good as another. */
  private long keptNanos;

  TopicCatalog(SourceOptions options) {
    this.options = options;
    admin = AdminApi.shared(options.client());
    limits = new ReadLimits(admin);
  }

  /** Returns the source's topics as they are now, by full name; those that are not there are left out. */
  SortedMap<String, Topic> look() {
    long began = System.nanoTime();
    if (lookedAt != 0 && began - lookedAt < keptNanos) return topics;
    if (shapedAt == 0 || began - shapedAt >= ASK_EVERY_NANOS) {
      shapes = shapes();
      shapedAt = System.nanoTime();
    }
    topics = filled();
    lookedAt = System.nanoTime();
    // A query with nothing to do asks all the time: the broker is left alone for half of it.
    keptNanos = Math.max(SAME_LOOK_NANOS, lookedAt - began);
    return topics;
  }

  /** Returns the topics as they were at the last look. */
  SortedMap<String, Topic> last() {
    return lookedAt == 0 ? look() : topics;
  }

  /** Has the last look do for a while: what it found is enough for another batch. */
  void rest() {
    keptNanos = ASK_EVERY_NANOS;
  }

  /** Has the next look ask for topics, however fresh they are. */
  void doubt() {
    shapedAt = 0;
    lookedAt = 0;
  }

  /** Returns the place of the first entry of a time or later, by partition of a topic. */
  List<Place> placesAt(Topic topic, long timestamp) {
    var paths = new ArrayList<String>();
    for (int i = 0; i < topic.partitions.size(); i++)
      paths.add("persistent/" + topic.plain(i).path() + "/messageid/" + timestamp);
    List<Optional<JsonNode>> found = admin.findAll(paths);
    var out = new ArrayList<Place>();
    for (int i = 0; i < paths.size(); i++) {
      Ledgers ledgers = topic.partitions.get(i);
      Place first = found.get(i).map(n -> new Place(n.get("ledgerId").asLong(), Math.max(0, n.get("entryId").asLong())))
          .orElse(ledgers.first());
      out.add(ledgers.at(first));
    }
    return out;
  }

  private List<Shape> shapes() {
    var names = List.copyOf(options.pattern() == null ? options.topics() : matching());
    List<Optional<JsonNode>> found = admin.findAll(
        names.stream().map(name -> "persistent/" + name.path() + "/partitions").toList());
    var out = new ArrayList<Shape>();
    for (int i = 0; i < names.size(); i++) {
      PulsarTopic name = names.get(i);
      found.get(i).ifPresent(n -> out.add(new Shape(name, n.get("partitions").asInt())));
    }
    return out;
  }

  private Collection<PulsarTopic> matching() {
    var out = new TreeSet<PulsarTopic>();
    String namespace = "persistent/" + options.namespace();
    for (Optional<JsonNode> list : admin.findAll(List.of(namespace + "/partitioned", namespace)))
      for (JsonNode each : list.orElseThrow(this::noNamespace)) {
        if (!each.asText().startsWith("persistent://")) continue;
        PulsarTopic topic = PulsarTopic.parse(each.asText());
        if (!topic.isPartition() && !topic.isOwn() && options.reads(topic)) out.add(topic);
      }
    return out;
  }

  private PulsarFailure noNamespace() {
    return new PulsarFailure(PulsarFailure.TOPIC_MISSING, "cannot read " + options.described() + ": there is no namespace '"
        + options.namespace() + "' at " + options.client().service());
  }

  private SortedMap<String, Topic> filled() {
    List<PulsarTopic> plain = shapes.stream().flatMap(shape -> shape.plain().stream()).toList();
    List<Optional<JsonNode>> found = admin.findAll(
        plain.stream().map(each -> "persistent/" + each.path() + "/internalStats").toList());
    // Asked for later than what is there, which is loaded by then.
    List<Place> readable = limits.of(plain);
    var out = new TreeMap<String, Topic>();
    int at = 0;
    for (Shape shape : shapes) {
      int count = Math.max(1, shape.partitions);
      var partitions = new ArrayList<Ledgers>();
      for (int i = at; i < at + count; i++) {
        Place limit = readable.get(i);
        partitions.add(found.get(i).map(stats -> Ledgers.parse(stats, limit)).orElse(Ledgers.NONE));
      }
      boolean isThere = found.get(at).isPresent();
      at += count;
      // A plain topic without them is none; a partition may come into being with its first message.
      if (shape.partitions > 0 || isThere)
        out.put(shape.name.full(), new Topic(shape.name, shape.partitions > 0, List.copyOf(partitions)));
    }
    return Collections.unmodifiableSortedMap(out);
  }
}
