package io.headgate.kernel.pulsar;

import java.util.List;
import java.util.regex.Pattern;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * What a source of topics on Pulsar is told, checked.
 *
 * @param topics sorted; empty where a pattern says which
 * @param pattern whole local names of topics match it; null where they are named
 * @param namespace where topics of the pattern are, with its tenant; null where they are named
 * @param run the query's, for events
 * @param source its uid
 * @param subscription the one that shows how far the job has read; empty where it has none
 */
record SourceOptions(
    ClientOptions client, List<PulsarTopic> topics, Pattern pattern, String namespace, String start, long maxBytes,
    long maxRecord, int splits, boolean failOnLoss, boolean meta, String run, String source,
    String subscription) {
  static SourceOptions parse(CaseInsensitiveStringMap options) {
    String topics = options.getOrDefault("topics", "");
    String pattern = options.get("pattern");
    if (topics.isEmpty() == (pattern == null))
      throw new IllegalArgumentException("a Pulsar source reads either topics or those of a pattern");
    return new SourceOptions(
        ClientOptions.parse(options.get("client")),
        topics.isEmpty() ? List.of() : List.of(topics.split(",")).stream().map(String::strip).map(PulsarTopic::parse).sorted()
            .toList(),
        pattern == null ? null : Pattern.compile(pattern),
        pattern == null ? null : options.getOrDefault("namespace", "public/default"),
        options.getOrDefault("start", "earliest"),
        options.getLong("max.bytes", 64L << 20),
        options.getLong("max.record", 1L << 20),
        Math.max(1, options.getInt("splits", 1)),
        options.getOrDefault("on.data.loss", "fail").equals("fail"),
        options.getBoolean("meta", true),
        options.getOrDefault("gate", ""),
        options.getOrDefault("gate.source", topics.isEmpty() ? "" + pattern : topics),
        options.getOrDefault("subscription", ""));
  }

  boolean reads(PulsarTopic topic) {
    if (pattern == null) return topics.contains(topic);
    return namespace.equals(topic.tenant() + "/" + topic.namespace()) && pattern.matcher(topic.local()).matches();
  }

  boolean reads(String full) {
    return reads(PulsarTopic.parse(full));
  }

  /** Returns what is read, as messages name it. */
  String described() {
    if (pattern != null) return "topics of " + namespace + " like " + pattern;
    return topics.size() == 1 ? "topic '" + topics.get(0).local() + "'" : "topics " + names(", ");
  }

  String description() {
    return "pulsar(" + (pattern == null ? names(",") : pattern.pattern()) + ")";
  }

  /** Returns what its readers are called by Pulsar's tools. */
  String reader() {
    return subscription.isEmpty() ? "headgate" : "headgate-" + subscription + "-" + source.replaceAll("[^A-Za-z0-9._-]", "_");
  }

  private String names(String between) {
    return String.join(between, topics.stream().map(PulsarTopic::local).toList());
  }
}
