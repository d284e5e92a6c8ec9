package io.headgate.kernel.functions;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/** The workers of this process that no task uses; those unused for a minute are ended. */
final class WorkerPool {
  static final ScheduledExecutorService TIMER = Executors.newSingleThreadScheduledExecutor(task -> {
    var thread = new Thread(task, "headgate-function-timer");
    thread.setDaemon(true);
    return thread;
  });
  private static final long IDLE_NANOS = TimeUnit.SECONDS.toNanos(60);
  private static final Map<Key, Deque<Worker>> IDLE = new HashMap<>();

  /** Workers with the same functions and settings serve each other's tasks. */
  record Key(WorkerSettings settings, List<Integer> functions) {
    static Key of(WorkerSettings settings, List<FunctionSpec> functions) {
      return new Key(settings, functions.stream()
          .map(f -> Arrays.hashCode(f.code()) * 31 + f.sent().hashCode() * 17 + f.result().hashCode() + f.address()).toList());
    }
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
