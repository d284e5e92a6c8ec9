package io.headgate.kernel.kafka;

import java.util.List;
import java.util.regex.Pattern;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * What a source of topics on Kafka is told, checked.
 *
 * @param topics names, sorted; empty where a pattern says which
 * @param pattern whole names of topics match it; null where they are named
 * @param run the query's, for events
 * @param source its uid
 */
record SourceOptions(
    ClientOptions client, List<String> topics, Pattern pattern, String start, long maxBytes, long maxRecord, int splits,
    boolean failOnLoss, String isolation, boolean meta, String run, String source) {
  static SourceOptions parse(CaseInsensitiveStringMap options) {
    String topics = options.getOrDefault("topics", "");
    String pattern = options.get("pattern");
    if (topics.isEmpty() == (pattern == null))
      throw new IllegalArgumentException("a Kafka source reads either topics or those of a pattern");
    return new SourceOptions(
        ClientOptions.parse(options.get("client")),
        topics.isEmpty() ? List.of() : List.of(topics.split(",")).stream().map(String::strip).sorted().toList(),
        pattern == null ? null : Pattern.compile(pattern),
        options.getOrDefault("start", "earliest"),
        options.getLong("max.bytes", 64L << 20),
        options.getLong("max.record", 1L << 20),
        Math.max(1, options.getInt("splits", 1)),
        options.getOrDefault("on.data.loss", "fail").equals("fail"),
        options.getOrDefault("isolation", "read_committed"),
        options.getBoolean("meta", true),
        options.getOrDefault("gate", ""),
        options.getOrDefault("gate.source", topics.isEmpty() ? "" + pattern : topics));
  }

  boolean reads(String topic) {
    return pattern == null ? topics.contains(topic) : pattern.matcher(topic).matches();
  }

  /** Returns what is read, as messages name it. */
  String described() {
    if (pattern != null) return "topics like " + pattern;
    return topics.size() == 1 ? "topic '" + topics.get(0) + "'" : "topics " + String.join(", ", topics);
  }

  String description() {
    return "kafka(" + (pattern == null ? String.join(",", topics) : pattern.pattern()) + ")";
  }
}
