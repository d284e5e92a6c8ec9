package io.headgate.kernel.functions;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** The workers of this process that no task uses; those unused for a minute are ended. */
public final class WorkerPool {
  static final ScheduledThreadPoolExecutor TIMER = timer();
  private static final long IDLE_NANOS = TimeUnit.SECONDS.toNanos(60);
  private static final Map<Key, Deque<Worker>> IDLE = new HashMap<>();

  /**
   * Workers with the same functions and settings serve each other's tasks.
   *
   * @param functions a checksum of all that a worker is told of its functions
   */
  public record Key(WorkerSettings settings, String functions) implements Serializable {
    /** Returns the key of workers that have loaded these functions. */
    public static Key of(WorkerSettings settings, List<? extends WorkerFunction> functions) {
      try {
        MessageDigest sum = MessageDigest.getInstance("SHA-256");
        sum.update(Worker.describe(functions).toString().getBytes(StandardCharsets.UTF_8));
        return new Key(settings, HexFormat.of().formatHex(sum.digest()));
      } catch (NoSuchAlgorithmException e) {
        throw new IllegalStateException(e);
      }
    }
  }

  private static ScheduledThreadPoolExecutor timer() {
    var made = new ScheduledThreadPoolExecutor(1, task -> {
      var thread = new Thread(task, "headgate-function-timer");
      thread.setDaemon(true);
      return thread;
    });
    // Each call has a deadline, and most are canceled long before.
    made.setRemoveOnCancelPolicy(true);
    return made;
  }

  static {
    TIMER.scheduleWithFixedDelay(() -> endIdle(IDLE_NANOS), 10, 10, TimeUnit.SECONDS);
  }

  private WorkerPool() {}

  /** Returns a worker that has loaded the functions, for one task. */
  public static Worker take(Key key, List<? extends WorkerFunction> functions) {
    synchronized (IDLE) {
      Deque<Worker> idle = IDLE.getOrDefault(key, new ArrayDeque<>());
      for (Worker worker; (worker = idle.pollLast()) != null;) {
        if (worker.isReady()) return worker;
        worker.close();
      }
    }
    return Worker.start(key.settings, functions);
  }

  /** Takes back a worker that a task no longer uses; one whose task failed, or that is in the middle of a call, is ended. */
  public static void end(Key key, Worker worker, boolean succeeded) {
    if (succeeded && worker.isReady()) give(key, worker);
    else worker.close();
  }

  private static void give(Key key, Worker worker) {
    worker.used();
    synchronized (IDLE) {
      IDLE.computeIfAbsent(key, k -> new ArrayDeque<>()).addLast(worker);
    }
  }

  /** Ends the workers that no task has used for so long. */
  public static void endIdle(long nanos) {
    synchronized (IDLE) {
      for (Deque<Worker> idle : IDLE.values())
        while (!idle.isEmpty() && idle.peekFirst().isIdleFor(nanos)) idle.removeFirst().close();
      IDLE.values().removeIf(Deque::isEmpty);
    }
  }
}
