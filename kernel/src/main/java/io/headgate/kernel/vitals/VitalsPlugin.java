package io.headgate.kernel.vitals;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.slf4j.LoggerFactory;

/**
 * Tells the driver what each executor uses, every few seconds: Spark loads it in both. Spark's own heartbeats have peaks of
 * some pools only, and only of executors that run a task at that moment.
 */
public final class VitalsPlugin implements SparkPlugin {
  private static final long EVERY_SECONDS = 5;
  private static final String DRIVER = "driver";

  @Override public DriverPlugin driverPlugin() {
    return new OfDriver();
  }

  @Override public ExecutorPlugin executorPlugin() {
    return new OfExecutor();
  }

  private static final class OfDriver implements DriverPlugin {
    private final ExecutorRoll roll = new ExecutorRoll();

    @Override public Map<String, String> init(SparkContext spark, PluginContext context) {
      // Before the first executor registers.
      spark.addSparkListener(roll);
      ExecutorRoll.open(roll);
      return Map.of();
    }

    @Override public Object receive(Object message) {
      if (message instanceof String report) roll.report(report);
      return null;
    }

    @Override public void shutdown() {
      ExecutorRoll.close(roll);
    }
  }

  private static final class OfExecutor implements ExecutorPlugin {
    private ScheduledExecutorService clock;

    @Override public void init(PluginContext context, Map<String, String> ignored) {
      // A driver that runs the tasks itself measures itself.
      if (context.executorID().equals(DRIVER)) return;
      clock = Executors.newSingleThreadScheduledExecutor(task -> {
        var thread = new Thread(task, "headgate-vitals");
        thread.setDaemon(true);
        return thread;
      });
      clock.scheduleWithFixedDelay(() -> report(context), 0, EVERY_SECONDS, TimeUnit.SECONDS);
    }

    @Override public void shutdown() {
      if (clock != null) clock.shutdownNow();
    }

    private static void report(PluginContext context) {
      try {
        ObjectNode told = Vitals.measure();
        told.put("executor", context.executorID()).put("pid", ProcessHandle.current().pid());
        told.put("logs", logFolder());
        context.send(told.toString());
      } catch (IOException | RuntimeException e) {
        // The executor works without figures, and a task that threw would never run again.
        LoggerFactory.getLogger(VitalsPlugin.class).debug("cannot report the use of memory", e);
      }
    }
  }

  /** Returns the folder with the output of this process; empty where the output is in no file, as in a pod. */
  private static String logFolder() {
    String ofYarn = System.getProperty("spark.yarn.app.container.log.dir", "");
    if (!ofYarn.isEmpty()) return ofYarn;
    // A standalone worker writes it to the folder that it starts the process in.
    Path folder = Path.of("").toAbsolutePath();
    return Files.isRegularFile(folder.resolve("stderr")) ? folder.toString() : "";
  }
}
