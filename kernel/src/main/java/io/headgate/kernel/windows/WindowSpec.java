package io.headgate.kernel.windows;

import io.headgate.kernel.plan.Route;
import io.headgate.kernel.rows.Layout;
import java.io.Serializable;
import java.util.List;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * What a window operator is to do.
 *
 * @param name how errors call it
 * @param input what events look like
 * @param key the columns of the key, as they stand in the rows it makes
 * @param lateness for how long after its end a window still takes events, in ms of event time
 * @param copied whether several events may be made of one record, so that they have one place in their source
 * @param updates where the rows it makes go
 * @param late where late events go
 */
public record WindowSpec(
    String name, int address, Layout input, List<StructField> key, Assigner windows, List<Aggregate> aggregates,
    long lateness, Triggers early, boolean copied, Route updates, Route late) implements Serializable {
  /** Returns the columns of the rows it makes. */
  public static StructType schema(List<StructField> key, List<Aggregate> aggregates) {
    StructType all = new StructType();
    for (StructField each : key) all = all.add(each);
    all = all.add("window_start", DataTypes.TimestampType, false).add("window_end", DataTypes.TimestampType, false);
    for (Aggregate each : aggregates) all = all.add(each.field());
    return all.add("partial", DataTypes.BooleanType, false).add("correction", DataTypes.BooleanType, false)
        .add("processed_at", DataTypes.TimestampType, false);
  }

  /** Returns whether events must be taken in the order of their sources: rows come out of a shuffle in any. */
  boolean isOrdered() {
    return copied || windows.isOrdered() || early.hasEvents() || aggregates.stream().anyMatch(Aggregate::isOrdered);
  }
}
