package io.headgate.kernel;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** What a query's sources have to tell the user, until it is taken; bounded, so that nobody has to take it. */
public final class EventFeed {
  private static final int LIMIT = 1_000;
  private static final Map<String, EventFeed> ALL = new ConcurrentHashMap<>();

  private final ArrayDeque<String[]> events = new ArrayDeque<>();

  private EventFeed() {}

  /** Returns the feed of a query; the first to ask makes it. */
  public static EventFeed of(String run) {
    return ALL.computeIfAbsent(run, r -> new EventFeed());
  }

  public static void forget(String run) {
    ALL.remove(run);
  }

  /**
   * Tells of an event; the oldest one makes room where nobody takes them.
   *
   * @param kind a word that can be counted, such as {@code DATA_LOST}
   * @param source the source's uid
   */
  public synchronized void add(String kind, String source, String message) {
    if (events.size() >= LIMIT) events.removeFirst();
    events.add(new String[] {kind, source, message});
  }

  /** Takes what has come since the last call, oldest first: kind, source and message of each, as JSON. */
  public synchronized String drain() {
    var out = new ArrayList<>(events);
    events.clear();
    return Listing.of(out);
  }
}
