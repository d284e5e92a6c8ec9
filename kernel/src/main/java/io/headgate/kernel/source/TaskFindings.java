package io.headgate.kernel.source;

import io.headgate.kernel.EventFeed;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.SparkContext;
import org.apache.spark.util.AccumulatorV2;

/**
 * What tasks have to tell of a source's topics, wherever they run; the driver passes it on to the query's {@link EventFeed}.
 *
 * <p>A task that runs again may find the same once more: each message is passed on once.
 */
public final class TaskFindings extends AccumulatorV2<Finding, Set<Finding>> {
  private final Set<Finding> findings;
  /** On the driver alone. */
  private final transient String run;
  private final transient String source;

  private TaskFindings(Set<Finding> findings, String run, String source) {
    this.findings = findings;
    this.run = run;
    this.source = source;
  }

  /** Returns one that tasks can be given. */
  public static TaskFindings registered(SparkContext spark, String run, String source) {
    var out = new TaskFindings(new HashSet<>(), run, source);
    spark.register(out);
    return out;
  }

  @Override public synchronized boolean isZero() { return findings.isEmpty(); }

  @Override public synchronized TaskFindings copy() { return new TaskFindings(new HashSet<>(findings), null, null); }

  @Override public synchronized void reset() { findings.clear(); }

  @Override public synchronized void add(Finding finding) { findings.add(finding); }

  /** Called by Spark for each task that has succeeded, on the driver. */
  @Override public synchronized void merge(AccumulatorV2<Finding, Set<Finding>> other) {
    for (Finding each : other.value())
      if (findings.add(each) && run != null) EventFeed.of(run).add(each.kind().name(), source, each.message());
  }

  @Override public synchronized Set<Finding> value() { return Set.copyOf(findings); }
}
