package io.headgate.kernel.functions;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Deque;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Writes what a process prints to the log, and remembers the end of it. */
final class LastLines {
  private static final Logger LOG = LoggerFactory.getLogger("headgate.functions");
  private static final int KEPT = 20;
  private static final int LONGEST = 500;

  private final Deque<String> kept = new ArrayDeque<>();
  private final Thread reading;

  LastLines(Process process) {
    reading = new Thread(() -> read(process), "headgate-function-output");
    reading.setDaemon(true);
    reading.start();
  }

  private void read(Process process) {
    try (BufferedReader lines = process.inputReader(StandardCharsets.UTF_8)) {
      for (String line; (line = lines.readLine()) != null;) add(line);
    } catch (IOException e) {
      // The process is gone.
    }
  }

  private synchronized void add(String line) {
    String cut = line.length() > LONGEST ? line.substring(0, LONGEST) + "…" : line;
    LOG.info(cut);
    if (kept.size() == KEPT) kept.removeFirst();
    kept.addLast(cut);
  }

  /** Returns the end of what the process printed, for an error message; empty if it printed nothing. */
  String told() {
    try {
      reading.join(1000);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    synchronized (this) {
      return kept.isEmpty() ? "" : "; its last lines: " + String.join(" | ", kept);
    }
  }
}
