package io.headgate.kernel.process;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.headgate.kernel.broadcast.BroadcastSpec;
import io.headgate.kernel.functions.ArrowSender;
import io.headgate.kernel.functions.FunctionSpec;
import io.headgate.kernel.functions.WorkerFunction;
import io.headgate.kernel.plan.Route;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.Layout;
import java.io.Serializable;
import java.util.List;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * A keyed process function of a flow, as tasks call it.
 *
 * @param name how messages name the function: its operator and its uid
 * @param inputs the events that arrive: of one stream, or of two that are connected, left first
 * @param shared whether one record may be in both streams
 * @param key the columns of the key, as the left side names them
 * @param broadcast the table whose rows each task has; null if there is none
 * @param timers whether the function has timers
 * @param ttl whether any of its state expires
 * @param deadLetters whether events and timers on which the function fails become dead letters; otherwise they fail the task
 * @param code the function, pickled
 */
public record ProcessSpec(
    String uid, String name, List<Input> inputs, boolean shared, List<StructField> key, StateSchemas state, BroadcastSpec broadcast, boolean timers, boolean ttl,
    List<Output> outputs, boolean deadLetters, byte[] code)
    implements WorkerFunction, Serializable {
  /** The number of buckets that the keys of a process function are in. */
  public static final int BUCKETS = 128;

  /** Rows that the function emits, and where they go. */
  public record Output(String port, StructType schema, Route route) implements Serializable {}

  /**
   * The events of one stream.
   *
   * @param address where they go
   * @param columns the columns that the function sees
   * @param failing makes dead letters of them
   */
  public record Input(int address, Layout layout, int[] columns, Route.Failing failing) implements Serializable {
    /** Returns the columns that are sent of an event. */
    StructType sent() {
      return FunctionSpec.sent(layout, columns);
    }

    boolean sendsAll() {
      return columns.length == layout.schema().length();
    }
  }

  @Override public int address() {
    return inputs.get(0).address;
  }

  /** Returns whether the function takes the events of two streams. */
  boolean isConnected() {
    return inputs.size() > 1;
  }

  /** Returns the place of the input that a row is for; -1 if it is for another operator. */
  int find(byte[] envelope) {
    for (int i = 0; i < inputs.size(); i++) if (Envelope.isFor(envelope, inputs.get(i).address)) return i;
    return -1;
  }

  StructType keys() {
    return new StructType(key.toArray(StructField[]::new));
  }

  @Override public void describe(ObjectNode node) {
    node.put("uid", uid).put("kind", "PROCESS").put("dead_letters", deadLetters).put("code", code).put("timers", timers);
    node.put("given", arrow(inputs.get(0).sent())).put("keys", arrow(keys())).put("record", arrow(state.record().schema()));
    if (isConnected()) node.put("right", arrow(inputs.get(1).sent()));
    ArrayNode pages = node.putArray("pages");
    for (int var = 0; var < state.vars(); var++) pages.add(arrow(state.page(var).schema()));
    if (broadcast != null) {
      node.put("broadcast", arrow(broadcast.schema()));
      ArrayNode columns = node.putArray("broadcast_key");
      broadcast.key().forEach(columns::add);
    }
    ArrayNode made = node.putArray("outputs");
    for (Output output : outputs) made.addObject().put("port", output.port).put("schema", arrow(output.schema));
  }

  private static byte[] arrow(StructType type) {
    return ArrowSender.schema(type).serializeAsMessage();
  }
}
