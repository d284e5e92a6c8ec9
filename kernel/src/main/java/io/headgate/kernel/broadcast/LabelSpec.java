package io.headgate.kernel.broadcast;

import io.headgate.kernel.plan.Route;
import io.headgate.kernel.rows.Layout;
import java.io.Serializable;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * An operator that adds to each event the labels of the rules that hold for it.
 *
 * @param input what events look like
 * @param output the same with the labels as the last column
 * @param when the place of the column of a rule with its condition, as SQL text
 * @param label the place of the column of a rule with its label
 * @param out where events go
 * @param failing makes dead letters of events on which a condition fails
 * @param refused makes dead letters of rules whose condition cannot be compiled
 */
public record LabelSpec(
    int address, Layout input, StructType output, BroadcastSpec rules, int when, int label, DataType labelType, Route out,
    Route.Failing failing, Route.Failing refused)
    implements Serializable {}
