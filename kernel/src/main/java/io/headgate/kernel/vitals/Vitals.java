package io.headgate.kernel.vitals;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.lang.management.MemoryUsage;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.execution.streaming.state.RocksDBMemoryManager;

/** What this process uses of its memory and of its time, as JSON: read from counters that the JVM keeps anyway. */
public final class Vitals {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Set<String> BUFFERS = Set.of("direct", "mapped");

  private Vitals() {}

  /**
   * Returns {@code pools}, each with {@code used} bytes and what is known of {@code max} and of {@code live}, the bytes that
   * the last full collection left; {@code threads}; {@code cpu_ns}, {@code gc_ms} and {@code gc_count} since the start;
   * {@code resident} bytes; and the {@code resident} bytes of each process that calls Python functions.
   */
  public static String read() {
    return measure().toString();
  }

  /** Returns the same as a tree. */
  static ObjectNode measure() {
    ObjectNode told = JSON.createObjectNode();
    ObjectNode pools = told.putObject("pools");
    MemoryUsage heap = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage();
    ObjectNode heapPool = pool(pools, "heap", heap.getUsed(), heap.getMax());
    long compiled = 0;
    for (MemoryPoolMXBean each : ManagementFactory.getMemoryPoolMXBeans()) {
      String name = each.getName();
      if (each.getType() == MemoryType.HEAP) {
        // The old generation is what full collections leave; the others are empty after one.
        if (name.contains("Old") || name.contains("Tenured")) putLive(heapPool, each.getCollectionUsage());
      } else if (name.equals("Metaspace")) {
        pool(pools, "metaspace", each.getUsage().getUsed(), each.getUsage().getMax());
      } else if (name.startsWith("CodeHeap") || name.equals("CodeCache")) {
        compiled += each.getUsage().getUsed();
      }
    }
    pool(pools, "compiled-code", compiled, -1);
    for (BufferPoolMXBean each : ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class))
      // A third one is of files that are mapped without being synced, which nothing here does.
      if (BUFFERS.contains(each.getName())) pool(pools, each.getName(), each.getMemoryUsed(), -1);
    SparkMemory.putPools((name, used, max) -> pool(pools, name, used, max));
    pool(pools, "state", RocksDBMemoryManager.getMemBytesUsed(), -1);
    told.put("threads", ManagementFactory.getThreadMXBean().getThreadCount());
    putTimes(told);
    ProcessHandle own = ProcessHandle.current();
    told.put("resident", resident(own.pid()));
    var workers = told.putArray("workers");
    own.children().forEach(child -> workers.add(resident(child.pid())));
    return told;
  }

  private static ObjectNode pool(ObjectNode pools, String name, long used, long max) {
    ObjectNode pool = pools.putObject(name).put("used", used);
    if (max > 0) pool.put("max", max);
    return pool;
  }

  private static void putLive(ObjectNode pool, MemoryUsage usage) {
    // Zero before the first full collection.
    if (usage != null && usage.getUsed() > 0) pool.put("live", usage.getUsed());
  }

  private static void putTimes(ObjectNode told) {
    long millis = 0;
    long count = 0;
    for (GarbageCollectorMXBean each : ManagementFactory.getGarbageCollectorMXBeans()) {
      millis += Math.max(0, each.getCollectionTime());
      count += Math.max(0, each.getCollectionCount());
    }
    told.put("gc_ms", millis).put("gc_count", count);
    var system = ManagementFactory.getPlatformMXBean(com.sun.management.OperatingSystemMXBean.class);
    told.put("cpu_ns", system == null ? 0 : Math.max(0, system.getProcessCpuTime()));
  }

  /** Returns the resident bytes of a process; 0 where the system does not tell, or for one that has ended. */
  private static long resident(long pid) {
    Path file = Path.of("/proc", Long.toString(pid), "status");
    try {
      List<String> lines = Files.readAllLines(file);
      for (String line : lines)
        if (line.startsWith("VmRSS:")) return Long.parseLong(line.replaceAll("[^0-9]", "")) * 1024;
    } catch (IOException e) {
      // It has ended, or this is not Linux.
    }
    return 0;
  }
}
