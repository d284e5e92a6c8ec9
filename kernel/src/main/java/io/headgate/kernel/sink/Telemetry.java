package io.headgate.kernel.sink;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;

/** What an epoch tells of itself beside the rows of its outputs, as JSON. */
final class Telemetry {
  /** What it is called among the sink's metrics; no output has such a name. */
  static final String NAME = "$telemetry";

  private static final ObjectMapper JSON = new ObjectMapper();
  /** The bounds of the histogram of latency, in milliseconds. */
  private static final long[] BOUNDS =
      {10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000};

  private Telemetry() {}

  /**
   * Returns {@code ports}, rows by port; {@code written}, rows that went anywhere; {@code latency}, how old the records
   * behind them were when the epoch was committed, in milliseconds, left out where there are none: percentiles, and a
   * histogram of {@code counts} by {@code bounds}.
   *
   * @param rows by output
   * @param took how long ago the moment is that ages are counted to
   */
  static String of(Outputs outputs, long[] rows, Map<String, Long> ports, List<FlowWriter.Done> tasks, long took) {
    ObjectNode told = JSON.createObjectNode();
    ports.forEach(told.putObject("ports")::put);
    long written = 0;
    for (int i = 0; i < rows.length; i++) if (outputs.all().get(i).kind() != Outputs.Kind.COUNTED) written += rows[i];
    told.put("written", written);
    var ages = new Ages();
    for (FlowWriter.Done task : tasks) ages.addAll(task.ages());
    long total = ages.total();
    if (total > 0) {
      ObjectNode latency = told.putObject("latency").put("rows", total).put("p50", ages.percentile(0.5) + took)
          .put("p95", ages.percentile(0.95) + took).put("p99", ages.percentile(0.99) + took)
          .put("sum", ages.sum() + total * took);
      put(latency.putArray("bounds"), BOUNDS);
      put(latency.putArray("counts"), ages.counts(BOUNDS, took));
    }
    return told.toString();
  }

  private static void put(ArrayNode array, long[] numbers) {
    for (long number : numbers) array.add(number);
  }
}
