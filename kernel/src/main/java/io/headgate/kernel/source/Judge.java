package io.headgate.kernel.source;

import io.headgate.kernel.CodedFailure;
import io.headgate.kernel.EventFeed;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Decides what findings mean for a query: its end, or something to tell. Serves the query's thread. */
public final class Judge {
  private static final int SHOWN = 5;

  private final String run;
  private final String source;
  private final boolean failOnLoss;
  private final Set<String> told = new HashSet<>();

  /**
   * @param run the query's
   * @param source the source's uid
   * @param failOnLoss whether lost records end the query
   */
  public Judge(String run, String source, boolean failOnLoss) {
    this.run = run;
    this.source = source;
    this.failOnLoss = failOnLoss;
  }

  /** Ends the query where records are lost and may not be, and tells the rest once. */
  public void judge(List<Finding> findings) {
    if (findings.isEmpty()) return;
    List<String> losses = findings.stream().filter(Finding::isLoss).map(Finding::message).distinct().toList();
    if (failOnLoss && !losses.isEmpty()) throw new CodedFailure(CodedFailure.DATA_LOST, joined(losses) + advice(findings));
    for (Finding finding : findings)
      if (told.add(finding.message())) EventFeed.of(run).add(finding.kind().name(), source, finding.message());
  }

  private static String joined(List<String> losses) {
    String more = losses.size() > SHOWN ? "; and " + (losses.size() - SHOWN) + " more" : "";
    return String.join("; ", losses.subList(0, Math.min(SHOWN, losses.size()))) + more;
  }

  private static String advice(List<Finding> findings) {
    for (Finding finding : findings)
      if (finding.kind() == Finding.Kind.TOPIC_GONE)
        return "; create it again: headgate topics create " + finding.topic() + ", and continue with --on-data-loss continue";
    return "; continue without the deleted records: --on-data-loss continue";
  }
}
