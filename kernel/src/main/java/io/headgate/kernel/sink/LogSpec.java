package io.headgate.kernel.sink;

import io.headgate.kernel.plan.Placement;
import java.io.Serializable;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.types.StructType;

/**
 * What a flow writes to one cluster of a log.
 *
 * @param cluster its place in the sink's list of clusters
 * @param client how clients reach it, as JSON; holds references to secrets, never secrets
 * @param delivery {@code exactly-once} or {@code at-least-once}
 * @param topics the topics by the address of the output
 * @param rows what the rows of outputs are that write objects in JSON, by the address of the output
 */
public record LogSpec(
    Query query, int cluster, String client, String delivery, Map<Integer, String> topics, Map<Integer, Rows> rows)
    implements Serializable {
  /**
   * What all clusters of a query have in common.
   *
   * @param run names this query alone
   * @param lineage what everything written is named after; it lives as long as the checkpoint
   * @param tasks how many tasks write an epoch, as far as it is known before the first one
   * @param sources uids by number, as rows name the source they come from
   * @param fence earlier lineages that must write no more
   * @param placement how the rows of a task are put in order
   * @param unfinishedSince when an epoch was begun that may be half written, in epoch milliseconds; 0 where there is none
   */
  public record Query(
      String run, String job, String lineage, int tasks, List<String> sources, List<Fenced> fence, Placement placement,
      long unfinishedSince)
      implements Serializable {}

  /**
   * An earlier lineage.
   *
   * @param tasks how many tasks it had at most
   * @param isOver whether none of them is alive while this driver is
   * @param last the last epoch whose rows are part of this lineage's history; -1 for none
   */
  public record Fenced(String lineage, int tasks, boolean isOver, long last) implements Serializable {}

  /**
   * The rows of an output.
   *
   * @param key the column that their message key is made of; null for none
   */
  public record Rows(StructType columns, String key) implements Serializable {}

  public boolean exactlyOnce() {
    return delivery.equals("exactly-once");
  }
}
