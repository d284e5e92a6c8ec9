package io.headgate.kernel.rolling;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** How the files of a query's outputs are made, by the address of the output: from the plan of a flow to its sink. */
public final class Sheets {
  private static final Map<String, Map<Integer, Sheet>> ALL = new ConcurrentHashMap<>();

  private Sheets() {}

  /** Makes the sheets those of a query. */
  public static void follow(String run, Map<Integer, Sheet> sheets) {
    ALL.put(run, Map.copyOf(sheets));
  }

  static Sheet of(String run, int output) {
    // Dead letters pass no encoder of an output.
    return ALL.getOrDefault(run, Map.of()).getOrDefault(output, Sheet.LINES);
  }

  static void forget(String run) {
    ALL.remove(run);
  }
}
