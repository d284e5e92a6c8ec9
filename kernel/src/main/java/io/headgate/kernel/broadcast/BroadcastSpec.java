package io.headgate.kernel.broadcast;

import io.headgate.kernel.operators.SchemaHistory;
import java.io.Serializable;
import java.util.List;
import org.apache.spark.sql.types.StructType;

/**
 * A broadcast table, as the operators know it that have its rows.
 *
 * @param schema the present columns
 * @param key the names of its key columns
 * @param history every schema that its rows have had
 */
public record BroadcastSpec(StructType schema, List<String> key, SchemaHistory history, ControlBuckets buckets)
    implements Serializable {}
