package io.headgate.kernel.vitals;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.Resubmitted$;
import org.apache.spark.Success$;
import org.apache.spark.TaskCommitDenied;
import org.apache.spark.TaskEndReason;
import org.apache.spark.TaskKilled;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorAdded;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The executors of this driver since it began, with their tasks and their last reports. A driver that runs the tasks itself
 * is one of them. The calls of Spark come on threads of its own.
 */
public final class ExecutorRoll extends SparkListener {
  private static final ObjectMapper JSON = new ObjectMapper();
  /** More lost ones than these are counted only. */
  private static final int MOST_LOST = 50;
  private static volatile ExecutorRoll current;

  /** By id, the one that came last: a standalone master that starts anew gives the ids of lost executors again. */
  private final Map<String, Entry> entries = new LinkedHashMap<>();
  /** The lost executors whose ids others have now, oldest first. */
  private final Deque<Entry> former = new ArrayDeque<>();
  /** Reports that came before Spark said that their executor is there. Those of forgotten ones are among them. */
  private final Map<String, Report> early = new LinkedHashMap<>() {
    @Override protected boolean removeEldestEntry(Map.Entry<String, Report> eldest) {
      return size() > MOST_LOST;
    }
  };
  private int lost;

  /** Of an executor: {@code lostAt} is 0 while it is there. */
  private static final class Entry {
    String id;
    String host;
    long since;
    int slots;
    int running;
    long completed;
    long failed;
    long shuffleRead;
    long shuffleWritten;
    Map<String, String> links;
    Report report;
    long lostAt;
    String reason;
  }

  private record Report(JsonNode vitals, long at) {}

  static void open(ExecutorRoll roll) {
    current = roll;
  }

  static void close(ExecutorRoll roll) {
    if (current == roll) current = null;
  }

  /**
   * Returns the executors in the order in which they came, as JSON: {@code lost}, the number of lost ones, and
   * {@code executors}, with all that are there and the last of the lost ones. Of each: {@code id}, {@code host},
   * {@code since}, {@code slots}; {@code running}, {@code completed} and {@code failed} tasks; {@code shuffle_read} and
   * {@code shuffle_written} bytes; {@code links} to its logs; {@code vitals} as of {@link Vitals}, with {@code at}; and
   * {@code lost_at} and {@code reason}. Moments are milliseconds since 1970.
   */
  public static String read() {
    ExecutorRoll roll = current;
    return (roll == null ? new ExecutorRoll() : roll).told();
  }

  /** Returns what {@link #read} does of the current one. */
  public synchronized String told() {
    ObjectNode told = JSON.createObjectNode().put("lost", lost);
    var list = told.putArray("executors");
    for (Entry entry : former) put(entry, list.addObject());
    for (Entry entry : entries.values()) put(entry, list.addObject());
    return told.toString();
  }

  private static void put(Entry entry, ObjectNode node) {
    node.put("id", entry.id).put("host", entry.host).put("since", entry.since);
    node.put("slots", entry.slots).put("running", entry.running);
    node.put("completed", entry.completed).put("failed", entry.failed);
    node.put("shuffle_read", entry.shuffleRead).put("shuffle_written", entry.shuffleWritten);
    ObjectNode links = node.putObject("links");
    entry.links.forEach(links::put);
    if (entry.report != null) node.put("at", entry.report.at).set("vitals", entry.report.vitals);
    if (entry.lostAt > 0) node.put("lost_at", entry.lostAt).put("reason", entry.reason);
  }

  /** Takes what an executor uses now: the JSON of {@link Vitals}, with the {@code executor}. */
  public void report(String text) {
    try {
      JsonNode vitals = JSON.readTree(text);
      String id = vitals.path("executor").asText();
      synchronized (this) {
        var report = new Report(vitals, System.currentTimeMillis());
        Entry entry = entries.get(id);
        // One that Spark has given up may still be alive: its report is not that of a time at which it was there, nor
        // that of the next one with its id.
        if (entry == null) early.put(id, report);
        else if (entry.lostAt == 0) entry.report = report;
      }
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("an executor sent invalid JSON", e);
    }
  }

  @Override public synchronized void onExecutorAdded(SparkListenerExecutorAdded event) {
    // Spark registers no second executor of an id before the first one is removed.
    Entry lostOne = entries.remove(event.executorId());
    if (lostOne != null) former.add(lostOne);
    var entry = new Entry();
    entry.id = event.executorId();
    entry.report = early.remove(event.executorId());
    entry.host = event.executorInfo().executorHost();
    entry.since = event.time();
    entry.slots = event.executorInfo().totalCores();
    entry.links = new LinkedHashMap<>(CollectionConverters.asJava(event.executorInfo().logUrlMap()));
    entries.put(event.executorId(), entry);
  }

  @Override public synchronized void onExecutorRemoved(SparkListenerExecutorRemoved event) {
    Entry entry = entries.get(event.executorId());
    if (entry == null || entry.lostAt > 0) return;
    entry.lostAt = event.time();
    entry.reason = event.reason() == null ? "" : event.reason();
    entry.running = 0;
    lost++;
    forgetOldest();
  }

  private void forgetOldest() {
    if (former.size() + entries.values().stream().filter(each -> each.lostAt > 0).count() <= MOST_LOST) return;
    if (!former.isEmpty()) {
      former.remove();
      return;
    }
    String oldest = entries.values().stream().filter(each -> each.lostAt > 0).map(each -> each.id).findFirst().orElseThrow();
    entries.remove(oldest);
  }

  @Override public synchronized void onTaskStart(SparkListenerTaskStart event) {
    Entry entry = entries.get(event.taskInfo().executorId());
    if (entry != null && entry.lostAt == 0) entry.running++;
  }

  @Override public synchronized void onTaskEnd(SparkListenerTaskEnd event) {
    Entry entry = entries.get(event.taskInfo().executorId());
    TaskEndReason reason = event.reason();
    // Spark reports a task that succeeded a second time if its output was lost with its executor.
    if (entry == null || reason == Resubmitted$.MODULE$) return;
    entry.running = Math.max(0, entry.running - 1);
    if (reason == Success$.MODULE$) entry.completed++;
    else if (!(reason instanceof TaskKilled) && !(reason instanceof TaskCommitDenied)) entry.failed++;
    TaskMetrics metrics = event.taskMetrics();
    // A task that was lost with its executor has none.
    if (metrics == null) return;
    entry.shuffleRead += metrics.shuffleReadMetrics().totalBytesRead();
    entry.shuffleWritten += metrics.shuffleWriteMetrics().bytesWritten();
  }
}
