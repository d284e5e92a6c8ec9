package io.headgate.kernel.process;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.headgate.kernel.functions.ArrowSender;
import io.headgate.kernel.functions.FunctionSpec;
import io.headgate.kernel.functions.WorkerFunction;
import io.headgate.kernel.plan.Route;
import io.headgate.kernel.rows.Layout;
import java.io.Serializable;
import java.util.List;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * A keyed process function of a flow, as tasks call it.
 *
 * @param name how messages name the function: its operator and its uid
 * @param input the events that arrive
 * @param columns the columns of these events that the function sees
 * @param key the columns of the key
 * @param timers whether the function has timers
 * @param ttl whether any of its state expires
 * @param failing makes dead letters of events and timers on which the function fails
 * @param deadLetters whether it does; otherwise they fail the task
 * @param code the function, pickled
 */
public record ProcessSpec(
    int address, String uid, String name, Layout input, int[] columns, List<StructField> key, StateSchemas state,
    boolean timers, boolean ttl, List<Output> outputs, Route.Failing failing, boolean deadLetters, byte[] code)
    implements WorkerFunction, Serializable {
  /** The number of buckets that the keys of a process function are in. */
  public static final int BUCKETS = 128;

  /** Rows that the function emits, and where they go. */
  public record Output(String port, StructType schema, Route route) implements Serializable {}

  /** Returns the columns that are sent of an event. */
  StructType sent() {
    return FunctionSpec.sent(input, columns);
  }

  StructType keys() {
    return new StructType(key.toArray(StructField[]::new));
  }

  @Override public void describe(ObjectNode node) {
    node.put("uid", uid).put("kind", "PROCESS").put("dead_letters", deadLetters).put("code", code).put("timers", timers);
    node.put("given", arrow(sent())).put("keys", arrow(keys())).put("record", arrow(state.record().schema()));
    ArrayNode pages = node.putArray("pages");
    for (int var = 0; var < state.vars(); var++) pages.add(arrow(state.page(var).schema()));
    ArrayNode made = node.putArray("outputs");
    for (Output output : outputs) made.addObject().put("port", output.port).put("schema", arrow(output.schema));
  }

  private static byte[] arrow(StructType type) {
    return ArrowSender.schema(type).serializeAsMessage();
  }
}
