package io.headgate.kernel.files;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Collectors;

/**
 * A reader of a topic among others: looks at it until so many files are numbered, then prints the ledger.
 *
 * <p>Arguments: the topic's folder, how many files to wait for, and when to merge pages: how many, but for how many.
 */
public final class LedgerRace {
  public static void main(String[] arguments) throws Exception {
    Path root = Path.of(arguments[0]);
    int files = Integer.parseInt(arguments[1]);
    var ledger = new Ledger(root, Integer.parseInt(arguments[2]), Integer.parseInt(arguments[3]));
    long deadline = System.nanoTime() + 60_000_000_000L;
    while (ledger.entries().size() < files) {
      if (System.nanoTime() > deadline) throw new IllegalStateException("numbered " + ledger.entries().size());
      ledger.refresh();
    }
    System.out.println(ledger.entries().stream().map(Ledger.Entry::path).collect(Collectors.joining("\n")));
  }
}
