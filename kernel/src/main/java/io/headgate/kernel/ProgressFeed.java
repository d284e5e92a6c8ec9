package io.headgate.kernel;

import java.util.ArrayList;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.streaming.StreamingQueryListener;

/** Keeps every progress report of the session's queries until it is taken: none is missed between two looks. */
public final class ProgressFeed extends StreamingQueryListener {
  private final ConcurrentLinkedQueue<String> reports = new ConcurrentLinkedQueue<>();
  private final CountDownLatch ended = new CountDownLatch(1);

  @Override public void onQueryStarted(QueryStartedEvent event) {}

  @Override public void onQueryProgress(QueryProgressEvent event) {
    reports.add(event.progress().json());
  }

  @Override public void onQueryIdle(QueryIdleEvent event) {}

  @Override public void onQueryTerminated(QueryTerminatedEvent event) {
    ended.countDown();
  }

  /** Waits until every report of a query that has ended has come: Spark hands them over on a thread of its own. */
  public void awaitEnd(long millis) throws InterruptedException {
    ended.await(millis, TimeUnit.MILLISECONDS);
  }

  /** Takes the reports that have come since the last call, oldest first, as a JSON list of texts. */
  public String drain() {
    var out = new ArrayList<String>();
    for (String report = reports.poll(); report != null; report = reports.poll()) out.add(report);
    return Listing.of(out);
  }
}
