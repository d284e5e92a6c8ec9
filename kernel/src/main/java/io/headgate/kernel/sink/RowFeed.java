package io.headgate.kernel.sink;

import io.headgate.kernel.Listing;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Rows on their way to the terminal; bounded, so that a terminal nobody reads holds nothing up. */
public final class RowFeed {
  private static final int LIMIT = 10_000;
  private static final Map<String, RowFeed> ALL = new ConcurrentHashMap<>();

  private final ArrayDeque<String[]> rows = new ArrayDeque<>();
  private long dropped;

  private RowFeed() {}

  public static RowFeed of(String run) {
    return ALL.computeIfAbsent(run, r -> new RowFeed());
  }

  public static void forget(String run) {
    ALL.remove(run);
  }

  synchronized void add(String output, String row) {
    if (rows.size() >= LIMIT) {
      rows.removeFirst();
      dropped++;
    }
    rows.add(new String[] {output, row});
  }

  /** Takes what has come since the last call: pairs of output and row, as JSON. */
  public synchronized String drain() {
    var out = new ArrayList<>(rows);
    if (dropped > 0) out.add(0, new String[] {"", dropped + " rows were not shown"});
    dropped = 0;
    rows.clear();
    return Listing.of(out);
  }
}
