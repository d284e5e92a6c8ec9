package io.headgate.kernel.rolling;

import io.headgate.kernel.CodedFailure;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;

/**
 * Decides when staged rows of a folder are published: by size, by age, and at the end of the job. On the driver alone.
 *
 * <p>Only epochs that Spark has committed are published. The clock decides when that is, and never what the rows are.
 */
final class Roller {
  private static final long LOOK_MS = 200;
  private static final int TRIES = 4;
  /** How many times the size of a roll may wait before batches do. */
  private static final int BACKLOG = 4;
  /** Files of a few rows say little of how well rows compress. */
  private static final long TELLING = 64 * 1024;

  private final SparkContext spark;
  private final Journal journal;
  private final Rolling rolling;
  private final long rollSize;
  private final long rollAgeMs;
  private final ScheduledExecutorService thread;

  /** Written in this attempt or found at its start, and not known to be committed. */
  private final List<Staged> written = new ArrayList<>();
  private final List<Staged> committed = new ArrayList<>();
  private long committedTo = -1;
  private long rolledTo = -1;
  /** The size of visible files for each staged byte. */
  private double ratio = 1;
  private int failures;
  private RuntimeException failure;

  Roller(Journal journal, long rollSize, long rollAgeMs) {
    this.journal = journal;
    this.rollSize = rollSize;
    this.rollAgeMs = rollAgeMs;
    spark = SparkContext.getOrCreate();
    rolling = new Rolling(journal, spark);
    thread = Executors.newSingleThreadScheduledExecutor(task -> {
      var made = new Thread(task, "headgate-folder-roller");
      made.setDaemon(true);
      return made;
    });
  }

  /** Finishes what an earlier attempt began, before anything is written. */
  void recover() {
    onThread(() -> {
      Journal.Newest newest = rolling.recover();
      synchronized (this) {
        rolledTo = newest.last();
        learn(newest.outcome());
        for (Staged file : journal.staged()) if (file.epoch() > rolledTo) written.add(file);
      }
    });
    thread.scheduleWithFixedDelay(this::look, LOOK_MS, LOOK_MS, TimeUnit.MILLISECONDS);
  }

  /** Takes the place of earlier lineages, before anything is written. */
  void takeOver(List<Earlier> earlier) {
    onThread(() -> {
      for (Earlier run : earlier) rolling.takeOver(run.lineage(), run.last());
      rolling.finishTakeovers();
    });
  }

  /** @param last the last epoch whose rows are published; -1 for none */
  record Earlier(String lineage, long last) {}

  /** Takes note of what the tasks of an epoch have staged. */
  synchronized void written(List<Staged> files) {
    for (Staged file : files) {
      // A replay finds the files of the attempt before.
      written.removeIf(known -> known.task() == file.task() && known.epoch() == file.epoch());
      written.add(file);
    }
  }

  /** Takes note that all epochs that were begun are committed; throws if rows could not be published. */
  void settled() {
    synchronized (this) {
      for (Staged file : written) committedTo = Math.max(committedTo, file.epoch());
      committed.addAll(written);
      written.clear();
    }
    // Batches wait for files that are written more slowly than rows come.
    while (isBehind()) {
      check();
      try {
        Thread.sleep(LOOK_MS / 10);
      } catch (InterruptedException e) {
        throw CodedFailure.interrupted("files to be published");
      }
    }
    check();
  }

  private synchronized void check() {
    if (failure != null) throw failure;
  }

  private synchronized boolean isBehind() {
    return estimate() >= BACKLOG * threshold();
  }

  /** Publishes all that is committed. */
  void finish() {
    settled();
    while (hasCommitted()) onThread(this::roll);
  }

  private synchronized boolean hasCommitted() {
    return !committed.isEmpty();
  }

  void close() {
    if (!spark.isStopped()) spark.cancelJobGroup(Rolling.group(journal));
    thread.shutdownNow();
  }

  private void look() {
    try {
      if (isDue()) roll();
      failures = 0;
    } catch (CodedFailure e) {
      fail(e);
    } catch (IOException | RuntimeException e) {
      if (++failures >= TRIES) fail(e instanceof RuntimeException r ? r : new IllegalStateException(e.getMessage(), e));
      else pause();
    }
  }

  private synchronized void fail(RuntimeException e) {
    if (failure == null) failure = e;
  }

  private void pause() {
    try {
      Thread.sleep(1000L << failures);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private synchronized boolean isDue() {
    if (failure != null || committed.isEmpty()) return false;
    long oldest = committed.stream().mapToLong(Staged::since).min().getAsLong();
    return estimate() >= threshold() || System.currentTimeMillis() - oldest >= rollAgeMs;
  }

  /** Returns what the visible files of all committed rows would have. */
  private double estimate() {
    return committed.stream().mapToLong(Staged::bytes).sum() * ratio;
  }

  /** Each task at work makes a file of its own, once each would be large enough. */
  private long threshold() {
    long tasks = committed.stream().mapToInt(Staged::task).distinct().count();
    return rollSize * Math.max(1, Math.min(tasks, spark.defaultParallelism()));
  }

  /** On this object's thread. */
  private void roll() throws IOException {
    Roll wanted;
    synchronized (this) {
      if (committed.isEmpty()) return;
      List<Staged> files = committed.stream().sorted(Staged.ORDER).toList();
      int parts = (int) Math.max(1, Math.round(estimate() / rollSize));
      wanted = Roll.of(rolledTo + 1, committedTo, files, parts);
    }
    Journal.Newest newest = rolling.roll(wanted);
    synchronized (this) {
      // Less than wanted where the decision was made by a try that failed.
      rolledTo = newest.last();
      committed.removeIf(file -> file.epoch() <= rolledTo);
      learn(newest.outcome());
    }
  }

  private void learn(Outcome outcome) {
    if (outcome != null && outcome.staged() >= TELLING) ratio = Math.max(0.01, (double) outcome.bytes() / outcome.staged());
  }

  private interface Work {
    void run() throws IOException;
  }

  private void onThread(Work work) {
    Future<?> done = thread.submit(() -> {
      work.run();
      return null;
    });
    try {
      done.get();
    } catch (InterruptedException e) {
      throw CodedFailure.interrupted("files to be published");
    } catch (ExecutionException e) {
      throw e.getCause() instanceof RuntimeException r ? r : new IllegalStateException(e.getCause().getMessage(), e.getCause());
    }
  }
}
