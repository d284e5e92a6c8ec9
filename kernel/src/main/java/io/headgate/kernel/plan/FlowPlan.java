package io.headgate.kernel.plan;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import static org.apache.spark.sql.functions.array;
import static org.apache.spark.sql.functions.explode;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.when;

import io.headgate.kernel.PortTally;
import io.headgate.kernel.broadcast.BroadcastSpec;
import io.headgate.kernel.broadcast.ControlBuckets;
import io.headgate.kernel.broadcast.LabelProcessor;
import io.headgate.kernel.broadcast.LabelSpec;
import io.headgate.kernel.folder.FolderDecoder;
import io.headgate.kernel.formats.Formats;
import io.headgate.kernel.formats.Lines;
import io.headgate.kernel.formats.RecordDecoder;
import io.headgate.kernel.functions.FunctionSpec;
import io.headgate.kernel.functions.FunctionStage;
import io.headgate.kernel.joins.JoinProcessor;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.JsonDecoder;
import io.headgate.kernel.json.KeyText;
import io.headgate.kernel.json.MessageKey;
import io.headgate.kernel.operators.DecodeRecords;
import io.headgate.kernel.operators.EnrichProcessor;
import io.headgate.kernel.operators.SchemaHistory;
import io.headgate.kernel.process.Alarms;
import io.headgate.kernel.process.ProcessProcessor;
import io.headgate.kernel.process.WakeSource;
import io.headgate.kernel.rolling.Sheet;
import io.headgate.kernel.rolling.Sheets;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.MetaRow;
import io.headgate.kernel.time.Clocks;
import io.headgate.kernel.time.EventTime;
import io.headgate.kernel.time.GreatestTimes;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoder;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.StatefulProcessorWithInitialState;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Tuple2;

/**
 * A flow compiled against a Spark session: everything is checked here, and the pieces are handed out to build the query.
 *
 * <p>Every Dataset in between has the columns {@code _1}, the bucket that rows are spread by, and {@code _2}, the envelope.
 */
public final class FlowPlan {
  private static final Encoder<Tuple2<Integer, byte[]>> ROW = Encoders.tuple(Encoders.INT(), Encoders.BINARY());
  private static final Encoder<Tuple2<byte[], byte[]>> PAIR = Encoders.tuple(Encoders.BINARY(), Encoders.BINARY());

  private final Map<String, DecodeRecords> sources = new HashMap<>();
  private final Map<String, Operator> operators = new LinkedHashMap<>();
  private final Map<String, GreatestTimes> times = new HashMap<>();
  private final Map<Integer, Layout> functions = new HashMap<>();
  private final Map<Integer, RouteRows> results = new HashMap<>();
  private final Map<String, Rebalance> rebalances = new HashMap<>();
  private Map<Integer, StructType> written = Map.of();
  /** The stateful operators and rebalances, in the order rows pass through them. */
  private final List<String> steps = new ArrayList<>();
  /** The calls of Python functions, by the number of these steps before them. */
  private final Map<Integer, FunctionStage> calls = new HashMap<>();

  /** A stateful operator; those that go by event time have timers. */
  public record Operator(
      StatefulProcessorWithInitialState<Integer, Tuple2<Integer, byte[]>, Tuple2<Integer, byte[]>, Tuple2<Integer, byte[]>>
          processor,
      TimeMode time) {
    public boolean isTimed() {
      return time == TimeMode.EventTime();
    }
  }

  /** What formats ask other systems before the first batch. */
  private final List<Runnable> checks = new ArrayList<>();

  /** How the files of outputs are made, by the address of the output. */
  private final Map<Integer, Sheet> sheets = new HashMap<>();

  private final ControlBuckets controls;
  private final PortTally tally;
  private final Alarms alarms;
  private final Placement placement;

  private FlowPlan(ControlBuckets controls, PortTally tally, Alarms alarms, Placement placement) {
    this.controls = controls;
    this.tally = tally;
    this.alarms = alarms;
    this.placement = placement;
  }

  /** Returns the columns of the records of outputs, JSON by the address of the output; of those that write objects. */
  public String written() {
    ObjectNode out = new ObjectMapper().createObjectNode();
    written.forEach((address, columns) -> out.put(address.toString(), columns.json()));
    return out.toString();
  }

  /** @param json what the engine made of the flow: sources, operators and functions in topological order */
  public static FlowPlan compile(SparkSession spark, String json) {
    JsonNode flow;
    try {
      flow = new ObjectMapper().readTree(json);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("not a flow: " + e.getMessage(), e);
    }
    var placement = new Placement(flow.path("placedSince").asLong());
    var controls = ControlBuckets.of(flow.path("parallelism").asInt(1));
    var plan = new FlowPlan(controls, PortTally.registered(spark), Alarms.registered(spark), placement);
    var routes = new RouteCompiler(
        spark, keys(flow), uids(flow), flow.get("deadLetters").asInt(), flow.get("job").asText(), topics(flow), plan.tally,
        new Unions(flow.path("unions")));
    for (JsonNode source : flow.get("sources")) {
      if (source.path("timed").asBoolean()) plan.times.put(source.get("id").asText(), GreatestTimes.registered(spark));
      plan.addSource(source, flow, routes);
    }
    for (JsonNode function : flow.get("functions")) plan.addFunction(function, routes);
    // What arrives at a function or an operator is known once all before it are compiled.
    plan.addCalls(0, flow, routes);
    for (JsonNode operator : flow.get("operators")) {
      plan.addStep(operator, flow, routes);
      plan.addCalls(plan.steps.size(), flow, routes);
    }
    plan.checks.addAll(routes.checks());
    plan.written = routes.written();
    plan.sheets.putAll(routes.folders().sheets());
    return plan;
  }

  static StructType schema(JsonNode node) {
    return (StructType) DataType.fromJson(node.toString());
  }

  private static JsonNode source(JsonNode flow, String id) {
    for (JsonNode source : flow.get("sources")) if (source.get("id").asText().equals(id)) return source;
    throw new IllegalArgumentException("no source " + id);
  }

  private static boolean isEnrich(JsonNode operator) {
    return operator.get("kind").asText().equals("enrich");
  }

  /** Returns the types of the key that each operator's table is kept under; those that have no table are left out. */
  private static Map<Integer, List<DataType>> keys(JsonNode flow) {
    var out = new HashMap<Integer, List<DataType>>();
    for (JsonNode operator : flow.get("operators")) {
      if (!isEnrich(operator)) continue;
      JsonNode table = source(flow, operator.get("table").asText());
      Layout layout = Layout.of(schema(table.get("schema")));
      out.put(operator.get("address").asInt(), paths(layout, table.get("key")).stream().map(Layout.Path::type).toList());
    }
    return out;
  }

  private static String[] topics(JsonNode flow) {
    var out = new ArrayList<String>();
    for (JsonNode source : flow.get("sources")) out.add(source.path("pattern").asBoolean() ? null : source.get("topic").asText());
    return out.toArray(String[]::new);
  }

  private static Map<Integer, String> uids(JsonNode flow) {
    var out = new HashMap<Integer, String>();
    for (JsonNode operator : flow.get("operators")) {
      out.put(operator.get("address").asInt(), operator.get("id").asText());
      if (operator.has("rightAddress")) out.put(operator.get("rightAddress").asInt(), operator.get("id").asText());
    }
    return out;
  }

  static List<Layout.Path> paths(Layout layout, JsonNode columns) {
    var out = new ArrayList<Layout.Path>();
    for (JsonNode column : columns) out.add(layout.find(column.asText()));
    return out;
  }

  private void addSource(JsonNode node, JsonNode flow, RouteCompiler routes) {
    Layout plain = Layout.of(schema(node.get("schema")));
    Layout layout = node.path("meta").isTextual() ? plain.attach(node.get("meta").asText(), MetaRow.SCHEMA) : plain;
    boolean table = node.get("kind").asText().equals("table");
    var takers = new ArrayList<Integer>();
    var broadcasts = new ArrayList<Integer>();
    for (JsonNode operator : flow.get("operators")) {
      if (!operator.path("table").asText().equals(node.get("id").asText())) continue;
      (isEnrich(operator) ? takers : broadcasts).add(operator.get("address").asInt());
    }
    String id = node.get("id").asText();
    RecordDecoder decoder = decoder(
        node, layout.base(), table ? names(node.get("key")) : null, (table ? "table '" : "stream '") + id + "'");
    checks.add(decoder::atStart);
    sources.put(id, new DecodeRecords(new DecodeRecords.Source(
        id,
        node.get("topic").asText(),
        sources.size(),
        layout,
        decoder,
        eventTime(node, layout),
        times.get(node.get("id").asText()),
        node.path("partitioned").asBoolean(true),
        table ? new KeyText(paths(layout, node.get("key"))) : null,
        table ? new MessageKey(layout.base(), paths(layout, node.get("key"))) : null,
        node.get("version").isNull() ? null : layout.find(node.get("version").asText()),
        takers.stream().mapToInt(i -> i).toArray(),
        broadcasts.stream().mapToInt(i -> i).toArray(),
        controls,
        table ? null : routes.compile(node.get("route"), layout, id),
        flow.get("deadLetters").asInt(),
        flow.get("job").asText(),
        flow.get("maxRecord").asLong(),
        placement,
        tally,
        tally.place(id),
        tally.place(RouteCompiler.refused(id)))));
  }

  private static List<String> names(JsonNode columns) {
    var out = new ArrayList<String>();
    for (JsonNode column : columns) out.add(column.asText());
    return out;
  }

  /** @param key the key of a table's rows; null for a stream */
  private static RecordDecoder decoder(JsonNode source, StructType schema, List<String> key, String name) {
    JsonNode folder = source.path("folder");
    if (folder.isMissingNode()) return Formats.decoder(source.path("format"), schema, key, Lines.of(source), name);
    return FolderDecoder.of(source.path("format"), schema, names(folder.path("partitions")), key, name);
  }

  private static EventTime eventTime(JsonNode source, Layout layout) {
    if (!source.path("timed").asBoolean()) return null;
    return new EventTime(layout.find(source.get("eventTime").asText()), source.get("timeUnit").asText());
  }

  private void addFunction(JsonNode node, RouteCompiler routes) {
    int address = node.get("address").asInt();
    functions.put(address, routes.arriving(address));
    // Without a schema of its own, a function gives rows like those it takes.
    // Nothing keeps it from making nulls: SQL behind it must not rely on there being none.
    StructType result = (node.get("schema").isNull() ? functions.get(address).schema() : schema(node.get("schema"))).asNullable();
    Route route = routes.compile(node.get("route"), Layout.of(result), node.get("id").asText());
    results.put(address, new RouteRows(Layout.of(result), route, placement));
  }

  private void addCalls(int stage, JsonNode flow, RouteCompiler routes) {
    var functions = new ArrayList<FunctionSpec>();
    for (JsonNode call : flow.path("calls"))
      if (call.get("stage").asInt() == stage) functions.add(PythonFunctions.function(call, flow.get("worker"), routes));
    if (!functions.isEmpty()) calls.put(stage, new FunctionStage(functions, PythonFunctions.worker(flow.get("worker")), placement));
  }

  private void addStep(JsonNode node, JsonNode flow, RouteCompiler routes) {
    String id = node.get("id").asText();
    steps.add(id);
    if (!node.get("kind").asText().equals("rebalance")) {
      addOperator(node, flow, routes);
      return;
    }
    int address = node.get("address").asInt();
    Layout layout = routes.arriving(address);
    rebalances.put(id, new Rebalance(address, layout, routes.compile(node.get("out"), layout, id), placement));
  }

  private void addOperator(JsonNode node, JsonNode flow, RouteCompiler routes) {
    Operator operator = switch (node.get("kind").asText()) {
      case "enrich" -> new Operator(enrich(node, flow, routes), TimeMode.None());
      case "window" -> new Operator(TimedOperators.window(node, routes), TimeMode.EventTime());
      case "dedupe" -> new Operator(TimedOperators.dedupe(node, routes), TimeMode.EventTime());
      case "join" -> new Operator(TimedOperators.join(node, routes), TimeMode.EventTime());
      case "label" -> new Operator(label(node, flow, routes), TimeMode.None());
      case "process" -> new Operator(
          TimedOperators.process(
              node, broadcast(node, flow), PythonFunctions.worker(flow.get("worker")), routes, alarms), TimeMode.EventTime());
      default -> throw new IllegalArgumentException("unknown operator " + node);
    };
    operators.put(node.get("id").asText(), operator);
  }

  private static EnrichProcessor enrich(JsonNode node, JsonNode flow, RouteCompiler routes) {
    int address = node.get("address").asInt();
    Layout input = routes.arriving(address);
    JsonNode table = source(flow, node.get("table").asText());
    StructType now = schema(table.get("schema"));
    var history = new ArrayList<StructType>();
    for (JsonNode old : node.get("history")) history.add(schema(old));
    Layout output = input.attach(node.get("into").asText(), now);
    return new EnrichProcessor(
        address, input, output, new SchemaHistory(history, empty(now)),
        routes.compile(node.get("matched"), output, TimedOperators.port(node, "matched")),
        routes.compile(node.get("missing"), input, TimedOperators.port(node, "missing")));
  }

  private LabelProcessor label(JsonNode node, JsonNode flow, RouteCompiler routes) {
    int address = node.get("address").asInt();
    String id = node.get("id").asText();
    String name = node.get("name").asText();
    Layout input = routes.arriving(address);
    BroadcastSpec rules = broadcast(node, flow);
    int condition = rules.schema().fieldIndex(node.get("when").asText());
    int label = rules.schema().fieldIndex(node.get("label").asText());
    DataType type = rules.schema().fields()[label].dataType();
    StructType output = input.schema().add(node.get("into").asText(), DataTypes.createArrayType(type, true), false);
    return new LabelProcessor(new LabelSpec(
        address, input, output, rules, condition, label, type, routes.compile(node.get("out"), Layout.of(output), id),
        routes.failing(id, name, input), routes.failing(id, name, Layout.of(rules.schema()))));
  }

  /** Returns the table whose rows each task of an operator has; null if there is none. */
  private BroadcastSpec broadcast(JsonNode node, JsonNode flow) {
    if (!node.hasNonNull("table")) return null;
    JsonNode table = source(flow, node.get("table").asText());
    var history = new ArrayList<StructType>();
    for (JsonNode old : node.get("tableHistory")) history.add(schema(old));
    StructType now = schema(table.get("schema"));
    return new BroadcastSpec(now, names(table.get("key")), new SchemaHistory(history, empty(now)), controls);
  }

  /** Returns a row that has nothing but the columns' defaults. */
  static UnsafeRow empty(StructType schema) {
    try {
      return new JsonDecoder(optional(schema), false).decode(new byte[] {'{', '}'}).copy();
    } catch (BadRecord e) {
      throw new IllegalStateException(e);
    }
  }

  private static StructType optional(StructType schema) {
    StructType out = new StructType();
    for (StructField f : schema.fields()) out = out.add(new StructField(f.name(), f.dataType(), true, f.metadata()));
    return out;
  }

  /** Asks schema registries whether the flow and its topics fit, and has them know what is written. Call it once, before a query. */
  public void checkFormats() {
    checks.forEach(Runnable::run);
  }

  /** Returns what is told of a timed stream's event times. */
  public GreatestTimes times(String source) {
    return times.get(source);
  }

  public DecodeRecords source(String id) {
    return sources.get(id);
  }

  /** Returns the stateful operators in the order rows pass through them. */
  public Collection<Operator> operators() {
    return operators.values();
  }

  /** Returns a stateful operator by its uid; null if there is none. */
  public Operator operator(String uid) {
    return operators.get(uid);
  }

  /** Returns whether any operator goes by event time. */
  public boolean timed() {
    return operators.values().stream().anyMatch(Operator::isTimed);
  }

  /** Has the clocks and wakes of a query follow what its tasks report, and its sink tell the rows that are counted. */
  public void startClocks(String run) {
    tally.follow(run);
    WakeSource.follow(run, alarms);
    Sheets.follow(run, sheets);
    times.forEach(Clocks.of(run)::follow);
  }

  /**
   * Puts a stream's clock, which has no rows, beside the stream's own, and Spark's watermark behind the clock.
   *
   * <p>No row bears a time for it: {@link Clocks} set it. The column it stands on is gone right behind it: operators whose rows
   * had it would never see late ones.
   */
  public Dataset<Row> timed(Dataset<Row> rows, Dataset<Row> clock) {
    Column never = org.apache.spark.sql.functions.lit(new java.sql.Timestamp(0));
    return rows.union(
        clock.withColumn(PackedColumns.TIME, never).withWatermark(PackedColumns.TIME, "0 seconds").select("_1", "_2"));
  }

  /**
   * Puts the rows that wake process operators beside others.
   *
   * @param watermark whether Spark's watermark is to stand behind them: operators with timers need one, which no clock brings
   */
  public Dataset<Row> waking(Dataset<Row> rows, Dataset<Row> wakes, boolean watermark) {
    return watermark ? timed(rows, wakes) : rows.union(wakes);
  }

  /** Turns a source's records into envelopes. */
  public Dataset<Row> decode(Dataset<Row> records, String source) {
    return records.as(Encoders.BINARY()).mapPartitions(sources.get(source), ROW).toDF();
  }

  /**
   * Puts an operator behind rows; its state begins with what an earlier run held.
   *
   * @param held {@code key} and {@code value}, as state has them, of any number of partitions; read in the query's first batch
   *     alone. A key of a process function or a join begins with the number of its variable
   */
  public Dataset<Row> operate(Dataset<Row> rows, String operator, Dataset<Row> held) {
    Operator found = operators.get(operator);
    var initial = held.select(
        explode(buckets(found.processor, held)).as("_1"),
        PackedColumns.entry(held.col("key"), held.col("value")).as("_2"));
    return rows.groupBy("_1").as(Encoders.INT(), ROW)
        .transformWithState(
            found.processor, found.time, OutputMode.Update(),
            initial.groupBy("_1").as(Encoders.INT(), ROW), ROW, ROW)
        .toDF();
  }

  /** Returns the buckets that get each entry which an earlier run kept: those of a broadcast table go to each task. */
  private Column buckets(StatefulProcessor<?, ?, ?> processor, Dataset<Row> held) {
    Column key = held.col("key");
    Column copies = array(Arrays.stream(controls.all()).map(bucket -> lit(bucket)).toArray(Column[]::new));
    if (processor instanceof LabelProcessor) return copies;
    if (processor instanceof JoinProcessor) return array(PackedColumns.joinBucket(key));
    if (!(processor instanceof ProcessProcessor)) return array(PackedColumns.bucket(key));
    return when(PackedColumns.isBroadcast(key), copies)
        .otherwise(array(PackedColumns.processBucket(key, held.col("value"))));
  }

  public Dataset<Row> operate(Dataset<Row> rows, String operator) {
    Operator found = operators.get(operator);
    return rows.groupBy("_1").as(Encoders.INT(), ROW)
        .transformWithState(found.processor, found.time, OutputMode.Update(), ROW)
        .toDF();
  }

  /** Returns the ids of stateful operators and rebalances, in the order rows pass through them. */
  public List<String> steps() {
    return steps;
  }

  /** Returns a rebalance by its id; null for another step. */
  public Rebalance rebalance(String step) {
    return rebalances.get(step);
  }

  /** Spreads rows over as many tasks as there are partitions of state, and sends those of a rebalance on their way. */
  public Dataset<Row> rebalance(Dataset<Row> rows, String step) {
    return rows.repartition(rows.col("_1")).as(ROW).mapPartitions(rebalances.get(step), ROW).toDF();
  }

  /** Brings all rows of a message key into one task, for outputs where the last one of a key counts. */
  public Dataset<Row> byKey(Dataset<Row> rows) {
    return rows.repartition(rows.col("_1"));
  }

  /** Returns the calls of Python functions behind so many steps; null if there are none. */
  public FunctionStage calls(int stage) {
    return calls.get(stage);
  }

  /** Calls the Python functions behind so many steps. */
  public Dataset<Row> call(Dataset<Row> rows, int stage) {
    FunctionStage functions = calls.get(stage);
    return functions == null ? rows : rows.as(ROW).mapPartitions(functions, ROW).toDF();
  }

  /** Returns the rows that are not addressed to a function. */
  public Dataset<Row> without(Dataset<Row> rows, int function) {
    return rows.filter(PackedColumns.address(rows.col("_2")).notEqual(function));
  }

  /** Returns the rows addressed to a function as columns, and in a last column what has to come along with each. */
  public Dataset<Row> columns(Dataset<Row> rows, int function) {
    Dataset<Row> mine = rows.filter(PackedColumns.address(rows.col("_2")).equalTo(function));
    Column row = PackedColumns.unpack(mine.col("_2"), functions.get(function));
    return mine.select(row.as("row"), mine.col("_2").as(PackedColumns.ORIGIN))
        .select("row.*", PackedColumns.ORIGIN);
  }

  /** Returns the schema of a function's result, without the column that comes along. */
  public String resultSchema(int function) {
    return results.get(function).schema().json();
  }

  /** Puts the branches of a flow together; a source that several of them read stands in one place. */
  public Dataset<Row> union(List<Dataset<Row>> branches) {
    Dataset<Row> all = branches.get(0);
    for (Dataset<Row> branch : branches.subList(1, branches.size())) all = all.union(branch);
    return SharedSources.share(all);
  }

  /** Sends what a function made on its way. */
  public Dataset<Row> rejoin(Dataset<Row> made, int function) {
    StructType schema = results.get(function).schema();
    Column[] columns = Arrays.stream(schema.fieldNames()).map(n -> made.col(PackedColumns.quote(n))).toArray(Column[]::new);
    return made
        .select(made.col(PackedColumns.ORIGIN).as("_1"), PackedColumns.pack(org.apache.spark.sql.functions.struct(columns), schema).as("_2"))
        .as(PAIR).mapPartitions(results.get(function), ROW).toDF();
  }
}
