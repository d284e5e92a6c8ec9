package io.headgate.kernel.sink;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.headgate.kernel.plan.Placement;
import java.io.Serializable;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The clusters a flow writes to, in the order outputs name them. */
record Logs(List<LogWriters> clusters) implements Serializable {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Map<String, Logs> ALL = new ConcurrentHashMap<>();

  /**
   * Makes the writers of a query.
   *
   * @param options those of the sink: {@code clusters}, a list of {@code client} and {@code delivery}; {@code sources};
   *     {@code fence}, a list of {@code lineage} and {@code tasks}; {@code placed.since}, see {@link Placement};
   *     {@code unfinished.since}, see {@link LogSpec.Query}
   */
  static Logs of(CaseInsensitiveStringMap options, Outputs outputs) {
    JsonNode clusters = json(options, "clusters");
    var out = new ArrayList<LogWriters>();
    for (int i = 0; i < clusters.size(); i++) {
      var topics = new HashMap<Integer, String>();
      var rows = new HashMap<Integer, LogSpec.Rows>();
      Outputs.Kind kind = null;
      for (int o = 0; o < outputs.all().size(); o++) {
        Outputs.Output output = outputs.all().get(o);
        if (output.kind().writers() == null || output.cluster() != i) continue;
        kind = output.kind();
        topics.put(o, output.topic());
        if (output.rows() != null) rows.put(o, output.rows());
      }
      if (kind == null) throw new IllegalArgumentException("no output writes to cluster " + i);
      JsonNode cluster = clusters.get(i);
      out.add(load(kind.writers(), new LogSpec(
          query(options), i, cluster.get("client").toString(), cluster.get("delivery").asText(), topics, rows)));
    }
    var logs = new Logs(out);
    ALL.put(options.get("run"), logs);
    return logs;
  }

  private static LogSpec.Query query(CaseInsensitiveStringMap options) {
    var sources = new ArrayList<String>();
    for (JsonNode source : json(options, "sources")) sources.add(source.asText());
    var fence = new ArrayList<LogSpec.Fenced>();
    for (JsonNode f : json(options, "fence"))
      fence.add(new LogSpec.Fenced(
          f.get("lineage").asText(), f.get("tasks").asInt(), f.get("is_over").asBoolean(), f.path("last").asLong(-1)));
    return new LogSpec.Query(options.get("run"), options.get("job"), options.get("lineage"), options.getInt("tasks", 1),
        sources, fence, new Placement(options.getLong("placed.since", 0)), options.getLong("unfinished.since", 0));
  }

  private static JsonNode json(CaseInsensitiveStringMap options, String name) {
    try {
      return JSON.readTree(options.getOrDefault(name, "[]"));
    } catch (JsonProcessingException e) {
      // The text may hold what a user wrote into an option: it stays out of messages.
      throw new IllegalArgumentException("option '" + name + "' of the sink is not JSON");
    }
  }

  private static LogWriters load(String name, LogSpec spec) {
    try {
      return (LogWriters) Class.forName(name).getConstructor(LogSpec.class).newInstance(spec);
    } catch (InvocationTargetException e) {
      throw e.getCause() instanceof RuntimeException r ? r : new IllegalStateException(e.getCause());
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("cannot load " + name + ": its jar is not on Spark's class path", e);
    }
  }

  void prepare() {
    for (int i = 0; i < clusters.size(); i++) clusters.get(i).prepare(clusters.subList(0, i));
  }

  /** Takes note of what the tasks of an epoch reported, in the order of the clusters. */
  void written(List<FlowWriter.Done> tasks) {
    for (int i = 0; i < clusters.size(); i++) {
      int cluster = i;
      // No list of the streams' own: it may hold null.
      var reports = new ArrayList<Serializable>();
      tasks.forEach(task -> reports.add(task.reports()[cluster]));
      clusters.get(i).written(reports);
    }
  }

  void settled() {
    clusters.forEach(LogWriters::settled);
  }

  void finish() {
    clusters.forEach(LogWriters::finish);
  }

  /** Lets go of what a query that has ended keeps open in this process. */
  static void forget(String run) {
    Logs logs = ALL.remove(run);
    if (logs != null) for (LogWriters each : logs.clusters) each.close();
  }
}
