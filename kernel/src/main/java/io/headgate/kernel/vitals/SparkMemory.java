package io.headgate.kernel.vitals;

import org.apache.spark.SparkEnv;
import org.apache.spark.memory.MemoryManager;

/** The part of a heap that Spark shares out: to running tasks, and to blocks that it stores. */
final class SparkMemory {
  /** Takes a pool: its name, its used bytes, and its limit. */
  interface Pools {
    void put(String name, long used, long max);
  }

  private SparkMemory() {}

  /** Gives the pools {@code execution} and {@code storage}, which share one limit; none without Spark in this process. */
  static void putPools(Pools pools) {
    SparkEnv env = SparkEnv.get();
    // The memory manager is private to Spark; seen in 4.3.0.
    MemoryManager memory = env == null ? null : env.memoryManager();
    if (memory == null) return;
    long execution = memory.executionMemoryUsed();
    // What storage may take is what execution has left.
    long limit = memory.maxOnHeapStorageMemory() + memory.onHeapExecutionMemoryUsed() + memory.maxOffHeapMemory();
    pools.put("execution", execution, limit);
    pools.put("storage", memory.storageMemoryUsed(), limit);
  }
}
