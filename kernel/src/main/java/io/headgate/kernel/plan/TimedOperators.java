package io.headgate.kernel.plan;

import com.fasterxml.jackson.databind.JsonNode;
import io.headgate.kernel.broadcast.BroadcastSpec;
import io.headgate.kernel.functions.WorkerPool;
import io.headgate.kernel.functions.WorkerSettings;
import io.headgate.kernel.joins.JoinProcessor;
import io.headgate.kernel.joins.JoinSchemas;
import io.headgate.kernel.joins.JoinSpec;
import io.headgate.kernel.operators.DedupeProcessor;
import io.headgate.kernel.process.Alarms;
import io.headgate.kernel.process.ProcessProcessor;
import io.headgate.kernel.process.ProcessSpec;
import io.headgate.kernel.process.StateSchemas;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.windows.Aggregate;
import io.headgate.kernel.windows.Assigner;
import io.headgate.kernel.windows.FixedWindows;
import io.headgate.kernel.windows.SessionWindows;
import io.headgate.kernel.windows.Triggers;
import io.headgate.kernel.windows.WindowProcessor;
import io.headgate.kernel.windows.WindowSpec;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Iterator;
import java.util.List;
import java.util.Spliterator;
import java.util.Spliterators;
import java.util.stream.LongStream;
import java.util.stream.StreamSupport;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Makes the operators with timers of their JSON. */
final class TimedOperators {
  private TimedOperators() {}

  static WindowProcessor window(JsonNode node, RouteCompiler routes) {
    int address = node.get("address").asInt();
    String name = node.get("name").asText();
    Layout input = routes.arriving(address);
    List<StructField> key = key(node.get("key"), input, name);
    List<Aggregate> aggregates = aggregates(node.get("aggregates"), input, name);
    Layout output = Layout.of(WindowSpec.schema(key, aggregates));
    return new WindowProcessor(new WindowSpec(
        name, address, input, key, assigner(node.get("windows")), aggregates, node.get("lateness").asLong(),
        triggers(node.get("early")), node.path("copied").asBoolean(), routes.compile(node.get("updates"), output, port(node, "updates")),
        routes.compile(node.get("late"), input, port(node, "late"))));
  }

  static DedupeProcessor dedupe(JsonNode node, RouteCompiler routes) {
    int address = node.get("address").asInt();
    Layout input = routes.arriving(address);
    return new DedupeProcessor(
        address, input, node.get("within").asLong(), routes.compile(node.get("unique"), input, port(node, "unique")),
        routes.compile(node.get("repeated"), input, port(node, "repeated")),
        routes.compile(node.get("late"), input, port(node, "late")));
  }

  static JoinProcessor join(JsonNode node, RouteCompiler routes) {
    int address = node.get("address").asInt();
    int rightAddress = node.get("rightAddress").asInt();
    String name = node.get("name").asText();
    Layout left = routes.arriving(address);
    Layout right = routes.arriving(rightAddress);
    List<StructField> key = key(node.get("key"), left, name);
    List<StructField> rightKey = key(node.get("rightKey"), right, name);
    for (int i = 0; i < key.size(); i++) RouteCompiler.checkSameKey(key.get(i), rightKey.get(i), name);
    var history = new ArrayList<StructType>();
    for (JsonNode each : node.get("history")) history.add(FlowPlan.schema(each));
    Layout together = Layout.of(left.schema()).attach(node.get("into").asText(), right.schema());
    return new JoinProcessor(new JoinSpec(
        name, address, rightAddress, node.path("shared").asBoolean(), List.of(left, right), new JoinSchemas(name, left.schema(), right.schema(), history),
        node.get("before").asLong(), node.get("after").asLong(), key, together,
        routes.compile(node.get("matched"), together, port(node, "matched")),
        routes.compile(node.get("left_only"), Layout.of(left.schema()), port(node, "left_only")),
        routes.compile(node.get("right_only"), Layout.of(right.schema()), port(node, "right_only")),
        routes.compile(node.get("late"), Layout.of(JoinSpec.lateSchema(left.schema(), right.schema())), port(node, "late"))));
  }

  static ProcessProcessor process(
      JsonNode node, BroadcastSpec broadcast, WorkerSettings settings, RouteCompiler routes, Alarms alarms) {
    int address = node.get("address").asInt();
    String id = node.get("id").asText();
    String name = node.get("name").asText();
    Layout left = routes.arriving(address);
    List<StructField> key = key(node.get("key"), left, name);
    var inputs = new ArrayList<ProcessSpec.Input>();
    boolean connected = node.has("rightAddress");
    inputs.add(new ProcessSpec.Input(
        address, left, PythonFunctions.columns(node, left), routes.failing(id, name, connected ? "left" : null, left)));
    if (connected) {
      int rightAddress = node.get("rightAddress").asInt();
      Layout right = routes.arriving(rightAddress);
      key = together(key, key(node.get("rightKey"), right, name), name);
      int[] columns = PythonFunctions.columns(node, "rightColumns", right);
      inputs.add(new ProcessSpec.Input(rightAddress, right, columns, routes.failing(id, name, "right", right)));
    }
    var history = new ArrayList<StructType>();
    for (JsonNode each : node.get("history")) history.add(FlowPlan.schema(each));
    var outputs = new ArrayList<ProcessSpec.Output>();
    for (JsonNode each : node.get("outputs")) {
      String port = each.get("port").asText();
      StructType schema = FlowPlan.schema(each.get("schema"));
      outputs.add(new ProcessSpec.Output(port, schema, routes.compile(each.get("route"), Layout.of(schema), port(node, port))));
    }
    var spec = new ProcessSpec(
        id, name, List.copyOf(inputs), node.path("shared").asBoolean(), key, new StateSchemas(history), broadcast, node.get("timers").asBoolean(), node.get("ttl").asBoolean(),
        outputs, node.get("deadLetters").asBoolean(), Base64.getDecoder().decode(node.get("code").asText()));
    return new ProcessProcessor(spec, WorkerPool.Key.of(settings, List.of(spec)), alarms);
  }

  /** Returns what the rows of an operator's output are counted under. */
  static String port(JsonNode operator, String output) {
    return operator.get("id").asText() + "." + output;
  }

  private static List<StructField> key(JsonNode columns, Layout input, String name) {
    var out = new ArrayList<StructField>();
    for (JsonNode column : columns) {
      Layout.Path path = RouteCompiler.path(input, column.get("path"), name);
      // Rows without a key do not get this far.
      out.add(DataTypes.createStructField(column.get("name").asText(), path.type(), false));
    }
    return List.copyOf(out);
  }

  /** Returns the key of two streams: an integer is as wide as the wider of both. */
  private static List<StructField> together(List<StructField> left, List<StructField> right, String name) {
    var out = new ArrayList<StructField>();
    for (int i = 0; i < left.size(); i++) {
      RouteCompiler.checkSameKey(left.get(i), right.get(i), name);
      boolean wider = right.get(i).dataType().defaultSize() > left.get(i).dataType().defaultSize();
      DataType type = (wider ? right : left).get(i).dataType();
      out.add(DataTypes.createStructField(left.get(i).name(), type, false));
    }
    return List.copyOf(out);
  }

  private static List<Aggregate> aggregates(JsonNode nodes, Layout input, String name) {
    var out = new ArrayList<Aggregate>();
    for (JsonNode node : nodes) {
      Layout.Path column = node.get("path").isNull() ? null : RouteCompiler.path(input, node.get("path"), name);
      var aggregate = new Aggregate(
          node.get("name").asText(), node.get("kind").asText(), column, node.get("limit").asInt(0));
      if (aggregate.result() == null)
        throw new PlanException("BAD_AGGREGATE", "cannot plan " + name + ": " + aggregate.kind().replace('-', '_')
            + " does not work on column '" + column.name() + "', which is " + column.type().sql());
      out.add(aggregate);
    }
    return List.copyOf(out);
  }

  private static Assigner assigner(JsonNode node) {
    return switch (node.get("type").asText()) {
      case "tumbling" -> new FixedWindows(node.get("size").asLong(), node.get("size").asLong());
      case "sliding" -> new FixedWindows(node.get("size").asLong(), node.get("every").asLong());
      case "session" -> new SessionWindows(node.get("gap").asLong());
      default -> throw new IllegalArgumentException("unknown windows " + node);
    };
  }

  private static Triggers triggers(JsonNode early) {
    return new Triggers(
        spans(early, "events", "n").toArray(),
        spans(early, "event-time", "every").toArray(),
        spans(early, "processing-time", "every").min().orElse(0));
  }

  private static LongStream spans(JsonNode early, String type, String field) {
    Iterator<JsonNode> all = early.elements();
    return StreamSupport.stream(Spliterators.spliteratorUnknownSize(all, Spliterator.ORDERED), false)
        .filter(each -> each.get("type").asText().equals(type)).mapToLong(each -> each.get(field).asLong());
  }
}
