package io.headgate.kernel.functions;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.headgate.kernel.plan.Route;
import io.headgate.kernel.rows.Layout;
import java.io.Serializable;
import org.apache.spark.sql.types.StructType;

/**
 * A Python function of a flow, as tasks call it.
 *
 * @param name how messages name the function: its operator and its uid
 * @param input the rows that arrive
 * @param columns the columns of these rows that the function sees
 * @param result the rows that it returns; those that arrive for a filter
 * @param route where the results go
 * @param failing makes dead letters of rows on which the function fails
 * @param deadLetters whether such rows become dead letters; otherwise they fail the task
 * @param code the function and its argument's type, pickled
 * @param uid the uid of its operator
 * @param call how an async function is called; null for the other kinds
 */
public record FunctionSpec(
    int address, String name, Kind kind, Layout input, int[] columns, Layout result, Route route, Route.Failing failing,
    boolean deadLetters, byte[] code, String uid, CallSpec call)
    implements WorkerFunction, Serializable {
  /** What a function does to rows; the worker knows the kinds by these names. */
  public enum Kind { MAP, FLAT_MAP, FILTER, MAP_BATCHES, CALL }

  /** Returns the columns that are sent to the function. */
  StructType sent() {
    return sent(input, columns);
  }

  /** Returns some columns of the rows that arrive. */
  public static StructType sent(Layout input, int[] columns) {
    StructType all = input.schema();
    StructType out = new StructType();
    for (int column : columns) out = out.add(all.fields()[column]);
    return out;
  }

  @Override public void describe(ObjectNode node) {
    node.put("kind", kind.name()).put("dead_letters", deadLetters).put("code", code);
    node.put("given", ArrowSender.schema(sent()).serializeAsMessage());
    if (call != null)
      node.put("capacity", call.capacity()).put("timeout", call.timeoutMillis()).put("retries", call.retries());
    if (kind != Kind.FILTER) node.put("returned", ArrowSender.schema(result.schema()).serializeAsMessage());
  }

  /** Returns whether one row of the input may give several rows. */
  boolean multiplies() {
    return kind == Kind.FLAT_MAP || kind == Kind.MAP_BATCHES;
  }
}
