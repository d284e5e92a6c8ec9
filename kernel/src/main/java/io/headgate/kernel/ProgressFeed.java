package io.headgate.kernel;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.spark.sql.streaming.StreamingQueryListener;

/** Keeps every progress report of the session's queries until it is taken: none is missed between two looks. */
public final class ProgressFeed extends StreamingQueryListener {
  private final ConcurrentLinkedQueue<String> reports = new ConcurrentLinkedQueue<>();

  @Override public void onQueryStarted(QueryStartedEvent event) {}

  @Override public void onQueryProgress(QueryProgressEvent event) {
    reports.add(event.progress().json());
  }

  @Override public void onQueryIdle(QueryIdleEvent event) {}

  @Override public void onQueryTerminated(QueryTerminatedEvent event) {}

  /** Takes the reports that have come since the last call, oldest first. */
  public List<String> drain() {
    var out = new ArrayList<String>();
    for (String report = reports.poll(); report != null; report = reports.poll()) out.add(report);
    return out;
  }
}
