package io.headgate.kernel.plan;

import com.fasterxml.jackson.databind.JsonNode;
import io.headgate.kernel.functions.CallSpec;
import io.headgate.kernel.functions.FunctionSpec;
import io.headgate.kernel.functions.WorkerSettings;
import io.headgate.kernel.rows.Layout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;

/** Makes the functions that are written in Python, and the settings of their workers, of their JSON. */
final class PythonFunctions {
  private PythonFunctions() {}

  static WorkerSettings worker(JsonNode node) {
    var path = new ArrayList<String>();
    for (JsonNode folder : node.get("path")) path.add(folder.asText());
    return new WorkerSettings(
        node.get("python").asText(), node.get("version").asText(), path, node.get("code").asText(null),
        node.get("memory").asLong(), node.get("timeoutMillis").asLong(), node.get("check").asBoolean());
  }

  /** @param worker how workers are started, and where answers are recorded */
  static FunctionSpec function(JsonNode node, JsonNode worker, RouteCompiler routes) {
    int address = node.get("address").asInt();
    String id = node.get("id").asText();
    Layout input = routes.arriving(address);
    Layout result = node.get("schema").isNull() ? input : Layout.of(FlowPlan.schema(node.get("schema")));
    return new FunctionSpec(
        address,
        node.get("name").asText(),
        FunctionSpec.Kind.valueOf(node.get("kind").asText()),
        input,
        columns(node, input),
        result,
        routes.compile(node.get("route"), result, node.has("call") ? TimedOperators.port(node, "ok") : id),
        routes.failing(id, node.get("name").asText(), input),
        node.get("deadLetters").asBoolean(),
        Base64.getDecoder().decode(node.get("code").asText()),
        id,
        node.has("call") ? call(node, worker, input, routes) : null);
  }

  private static CallSpec call(JsonNode function, JsonNode worker, Layout input, RouteCompiler routes) {
    JsonNode node = function.get("call");
    Layout failed = input.attach(CallSpec.COLUMN, CallSpec.FAILURE);
    return new CallSpec(
        node.get("capacity").asInt(),
        node.get("timeoutMillis").asLong(),
        node.get("retries").asInt(),
        node.get("ordered").asBoolean(),
        failed,
        routes.compile(node.get("failed"), failed, TimedOperators.port(function, "failed")),
        worker.get("answers").asText());
  }

  /** Returns the places of the columns that a function sees: all, unless it names them. */
  static int[] columns(JsonNode node, Layout input) {
    return columns(node, "columns", input);
  }

  /** @param field what names the columns */
  static int[] columns(JsonNode node, String field, Layout input) {
    List<String> names = Arrays.asList(input.schema().fieldNames());
    if (node.get(field).isNull()) return java.util.stream.IntStream.range(0, names.size()).toArray();
    var out = new ArrayList<Integer>();
    for (JsonNode column : node.get(field)) {
      if (!names.contains(column.asText()))
        throw new PlanException("UNKNOWN_COLUMN", "cannot plan " + node.get("name").asText() + ": there is no column '"
            + column.asText() + "', only " + String.join(", ", names));
      out.add(names.indexOf(column.asText()));
    }
    return out.stream().mapToInt(i -> i).toArray();
  }
}
