package io.headgate.kernel.functions;

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
final class WorkerPool {
  static final ScheduledThreadPoolExecutor TIMER = timer();
  private static final long IDLE_NANOS = TimeUnit.SECONDS.toNanos(60);
  private static final Map<Key, Deque<Worker>> IDLE = new HashMap<>();

  /**
   * Workers with the same functions and settings serve each other's tasks.
   *
   * @param functions a checksum of all that a worker is told of its functions
   */
  record Key(WorkerSettings settings, String functions) {
    static Key of(WorkerSettings settings, List<FunctionSpec> functions) {
      try {
        MessageDigest sum = MessageDigest.getInstance("SHA-256");
        for (FunctionSpec f : functions) {
          String told = f.address() + f.name() + f.kind() + f.deadLetters() + f.sent().json() + f.result().schema().json();
          sum.update(told.getBytes(StandardCharsets.UTF_8));
          sum.update(f.code());
        }
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
    TIMER.scheduleWithFixedDelay(WorkerPool::endIdle, 10, 10, TimeUnit.SECONDS);
  }

  private WorkerPool() {}

  static Worker take(Key key, List<FunctionSpec> functions) {
    synchronized (IDLE) {
      Deque<Worker> idle = IDLE.getOrDefault(key, new ArrayDeque<>());
      for (Worker worker; (worker = idle.pollLast()) != null;) {
        if (worker.isReady()) return worker;
        worker.close();
      }
    }
    return Worker.start(key.settings, functions);
  }

  /** Takes back a worker whose task has succeeded. */
  static void give(Key key, Worker worker) {
    worker.used();
    synchronized (IDLE) {
      IDLE.computeIfAbsent(key, k -> new ArrayDeque<>()).addLast(worker);
    }
  }

  private static void endIdle() {
    synchronized (IDLE) {
      for (Deque<Worker> idle : IDLE.values())
        while (!idle.isEmpty() && idle.peekFirst().isIdleFor(IDLE_NANOS)) idle.removeFirst().close();
      IDLE.values().removeIf(Deque::isEmpty);
    }
  }
}
