package io.headgate.kernel.plan;

import com.fasterxml.jackson.databind.JsonNode;
import io.headgate.kernel.PortTally;
import io.headgate.kernel.formats.Formats;
import io.headgate.kernel.formats.Lines;
import io.headgate.kernel.formats.OutputColumns;
import io.headgate.kernel.formats.RawEncoder;
import io.headgate.kernel.json.DeadLetter;
import io.headgate.kernel.json.JsonEncoder;
import io.headgate.kernel.json.KeyText;
import io.headgate.kernel.json.OutputKey;
import io.headgate.kernel.json.RowEncoder;
import io.headgate.kernel.rows.Bucket;
import io.headgate.kernel.rows.Layout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;

/** Turns the JSON of a route into steps, and learns on the way what rows each operator will see. */
final class RouteCompiler {
  private final SparkSession spark;
  private final int deadLetters;
  private final String job;
  /** The topic of each source's records, by the source's number; null for one that reads several. */
  private final String[] topics;
  /** What arrives at each operator or function, by address. */
  private final Map<Integer, Layout> arrivals = new HashMap<>();
  /** The types of the key that a table is kept under, by the address of the operator; others have no table. */
  private final Map<Integer, List<DataType>> keys;
  /** The uids of operators, by address. */
  private final Map<Integer, String> uids;
  /** The columns of the records of outputs that write objects, by the address of the output. */
  private final Map<Integer, StructType> written = new TreeMap<>();
  private final PortTally tally;
  private final Unions unions;
  private final List<Runnable> checks = new ArrayList<>();
  private final FolderOutputs folders;

  /** @param deadLetters the address of the output for rows that fail */
  RouteCompiler(
      SparkSession spark, Map<Integer, List<DataType>> keys, Map<Integer, String> uids, int deadLetters, String job, String[] topics,
      PortTally tally, Unions unions) {
    this.unions = unions;
    written.put(deadLetters, DeadLetter.COLUMNS);
    folders = new FolderOutputs(spark);
    this.job = job;
    this.uids = uids;
    this.topics = topics;
    this.tally = tally;
    this.deadLetters = deadLetters;
    this.spark = spark;
    this.keys = keys;
  }

  FolderOutputs folders() {
    return folders;
  }

  Layout arriving(int address) {
    Layout layout = arrivals.get(address);
    if (layout == null) throw new IllegalStateException("nothing is routed to address " + address);
    return layout;
  }

  /** @param port what the rows are counted under that take this way */
  Route compile(JsonNode steps, Layout layout, String port) {
    var out = new ArrayList<Route.Step>();
    for (JsonNode step : steps) out.add(step(step, layout));
    return new Route(out, tally, tally.place(port));
  }

  private Route.Step step(JsonNode step, Layout layout) {
    return switch (step.get("step").asText()) {
      case "where" -> where(step, layout);
      case "compute" -> compute(step, layout);
      case "operator" -> operator(step, layout);
      case "function" -> {
        arrivals.put(step.get("address").asInt(), layout);
        yield new Route.ToFunction(step.get("address").asInt());
      }
      case "rebalance" -> {
        arrivals.put(step.get("address").asInt(), layout);
        yield new Rebalance.Spread(step.get("address").asInt());
      }
      case "union" -> unions.step(step, layout, this);
      case "output" -> output(step, layout);
      case "count" -> new Route.Count(step.get("address").asInt());
      default -> throw new IllegalArgumentException("unknown step " + step);
    };
  }

  /** Compiles the columns of rows in another order, or in one segment, as they are. */
  RowProgram picked(List<String> columns, Layout layout, String name) {
    var list = columns.stream().map(column -> quote(column) + " AS " + quote(column)).toList();
    return RowProgram.compile(spark, layout.schema(), list, columns, name);
  }

  private Route.Step where(JsonNode step, Layout layout) {
    String name = step.get("name").asText();
    String condition = step.get("condition").asText();
    var program = RowProgram.compile(
        spark, layout.schema(), List.of("(" + condition + ") AS `keep`"), List.of(condition), name);
    DataType type = program.result().fields()[0].dataType();
    if (!(type instanceof BooleanType))
      throw new PlanException("BAD_EXPRESSION",
          "cannot plan " + name + ": '" + condition + "' is " + type.sql() + ", not a condition");
    String id = step.get("id").asText();
    return new Route.Where(program, failing(id, name, layout), compile(step.get("then"), layout, id));
  }

  private Route.Step compute(JsonNode step, Layout layout) {
    var columns = new LinkedHashMap<String, String>();
    if (step.get("keep").asBoolean())
      for (String name : layout.schema().fieldNames()) columns.put(name, quote(name));
    for (JsonNode c : step.get("columns")) put(columns, c.get("name").asText(), c.get("expression").asText());
    var list = columns.entrySet().stream().map(e -> "(" + e.getValue() + ") AS " + quote(e.getKey())).toList();
    var program = RowProgram.compile(
        spark, layout.schema(), list, List.copyOf(columns.values()), step.get("name").asText());
    for (StructField field : program.result().fields()) checkTyped(field, columns, step.get("name").asText());
    String id = step.get("id").asText();
    return new Route.Compute(
        program, failing(id, step.get("name").asText(), layout), compile(step.get("then"), Layout.of(program.result()), id));
  }

  /** Refuses a column that has no type, and so no values: neither state nor outputs could hold it. */
  private static void checkTyped(StructField field, Map<String, String> columns, String operator) {
    if (field.dataType() instanceof NullType)
      throw new PlanException("BAD_EXPRESSION",
          "cannot plan " + operator + ": column '" + field.name() + "' is VOID, which is always null and has no type",
          "give it a type: CAST(" + columns.get(field.name()) + " AS STRING) AS " + quote(field.name()));
  }

  /** Adds a column, or puts it in the place of one that Spark takes for the same: names are read without regard to case. */
  private static void put(LinkedHashMap<String, String> columns, String name, String expression) {
    var before = new LinkedHashMap<>(columns);
    columns.clear();
    boolean placed = false;
    for (var each : before.entrySet()) {
      boolean same = each.getKey().equalsIgnoreCase(name);
      columns.put(same ? name : each.getKey(), same ? expression : each.getValue());
      placed |= same;
    }
    if (!placed) columns.put(name, expression);
  }

  private Route.Step operator(JsonNode step, Layout layout) {
    int address = step.get("address").asInt();
    var paths = new ArrayList<Layout.Path>();
    for (JsonNode on : step.get("on")) paths.add(path(layout, on, step.get("name").asText()));
    arrivals.put(address, layout);
    int buckets = step.path("buckets").asInt(Bucket.COUNT);
    if (step.path("broadcast").asBoolean())
      return new Route.ToBroadcast(
          address, buckets, step.path("spreads").asBoolean(), step.get("keyed").asBoolean() ? KeyText.ofNone() : null);
    List<DataType> wanted = keys.get(address);
    if (wanted == null) {
      for (Layout.Path path : paths) checkKey(path, step.get("name").asText());
      String side = step.hasNonNull("side") ? step.get("side").asText() : null;
      Route.Failing failing = failing(uids.get(address), step.get("name").asText(), side, layout);
      return new Route.ToKey(address, new KeyText(paths), buckets, failing);
    }
    for (int i = 0; i < paths.size(); i++) {
      if (!kind(paths.get(i).type()).equals(kind(wanted.get(i))))
        throw new PlanException("KEY_MISMATCH",
            "cannot plan " + step.get("name").asText() + ": column '" + paths.get(i).name() + "' is "
                + paths.get(i).type().sql() + ", and the table's key is " + wanted.get(i).sql());
    }
    return new Route.ToTable(address, new KeyText(paths), failing(uids.get(address), step.get("name").asText(), layout));
  }

  /** Refuses a key whose text may not be read back: Python does not know the types that SQL gives. */
  private static void checkKey(Layout.Path path, String name) {
    DataType type = path.type();
    boolean fits = type instanceof IntegralType || type instanceof StringType || type instanceof BooleanType
        || type instanceof DateType || type instanceof TimestampType || type instanceof DecimalType;
    if (!fits)
      throw new PlanException("KEY_TYPE",
          "cannot plan " + name + ": column '" + path.name() + "' is " + type.sql() + ", which cannot be a key");
  }

  /** Refuses columns of two streams that are compared as keys and could never be equal. */
  static void checkSameKey(StructField left, StructField right, String name) {
    if (!kind(left.dataType()).equals(kind(right.dataType())))
      throw new PlanException("KEY_MISMATCH",
          "cannot plan " + name + ": column '" + left.name() + "' of the left stream is " + left.dataType().sql()
              + ", and column '" + right.name() + "' of the right one is " + right.dataType().sql());
  }

  private static String kind(DataType type) {
    return type instanceof IntegralType ? "integer" : type.sql();
  }

  Route.Failing failing(String id, String operator, Layout layout) {
    return failing(id, operator, null, layout);
  }

  /** @param side which of the operator's two streams the rows are of, left or right; null where there is one */
  Route.Failing failing(String id, String operator, String side, Layout layout) {
    return new Route.Failing(deadLetters, job, topics, operator, side, letterEncoder(layout), tally, tally.place(refused(id)));
  }

  /** Returns what writes the row of a dead letter: as JSON, or as its bytes where it is nothing but a record of bytes. */
  private static RowEncoder letterEncoder(Layout layout) {
    StructField[] fields = layout.schema().fields();
    if (fields.length == 1 && fields[0].dataType() instanceof BinaryType && !fields[0].nullable())
      return new RawEncoder(layout.find(fields[0].name()));
    var names = new ArrayList<String>();
    for (StructField field : fields) if (JsonEncoder.writes(field.dataType())) names.add(field.name());
    return new JsonEncoder(names, names.stream().map(layout::find).toList());
  }

  /** Returns what the dead letters of a node are counted under. */
  static String refused(String id) {
    return id + "!";
  }

  /** Returns the columns of the records of outputs that write objects, by the address of the output. */
  Map<Integer, StructType> written() {
    return written;
  }

  private Route.Step output(JsonNode step, Layout layout) {
    Route.Failing failing = failing(step.get("id").asText(), step.get("name").asText(), layout);
    OutputColumns columns = columns(step, layout);
    if (step.hasNonNull("folder")) return folders.step(step, layout, columns, failing);
    RowEncoder encoder = Formats.encoder(step.path("format"), columns, Lines.of(step));
    checks.add(encoder::atStart);
    int address = step.get("address").asInt();
    Formats.findObject(step.path("format"), columns).ifPresent(type -> written.put(address, type));
    return new Route.ToOutput(address, encoder, outputKey(step, layout), failing);
  }

  private static OutputColumns columns(JsonNode step, Layout layout) {
    var names = new ArrayList<String>();
    var paths = new ArrayList<Layout.Path>();
    String name = step.get("name").asText();
    if (step.get("columns").isNull()) {
      for (String column : layout.schema().fieldNames()) {
        names.add(column);
        paths.add(layout.find(column));
      }
    } else {
      for (JsonNode c : step.get("columns")) {
        names.add(c.get("name").asText());
        paths.add(path(layout, c.get("path"), name));
      }
    }
    return new OutputColumns(name, names, paths, types(names, paths, step.get("columns"), layout.schema()));
  }

  /** @param chosen the columns that an output selects; null for all */
  private static StructType types(List<String> names, List<Layout.Path> paths, JsonNode chosen, StructType rows) {
    StructType out = new StructType();
    for (int i = 0; i < paths.size(); i++) {
      DataType type = rows;
      boolean nullable = false;
      for (String part : chosen.isNull() ? List.of(names.get(i)) : texts(chosen.get(i).get("path"))) {
        StructField field = ((StructType) type).apply(part);
        nullable |= field.nullable();
        type = field.dataType();
      }
      out = out.add(names.get(i), paths.get(i).type(), nullable);
    }
    return out;
  }

  private static List<String> texts(JsonNode list) {
    var out = new ArrayList<String>();
    for (JsonNode each : list) out.add(each.asText());
    return out;
  }

  /** Returns what outputs ask other systems before the first batch. */
  List<Runnable> checks() {
    return checks;
  }

  /** Returns what the output's message keys are made of, or null where it names no column for them. */
  private static OutputKey outputKey(JsonNode step, Layout layout) {
    if (!step.hasNonNull("key")) return null;
    Layout.Path path = path(layout, step.get("key"), step.get("name").asText());
    if (path.type() instanceof StructType || path.type() instanceof ArrayType || path.type() instanceof MapType)
      throw new PlanException("KEY_MISMATCH", "cannot plan " + step.get("name").asText() + ": column '" + path.name() + "' is "
          + path.type().sql() + ", and a message key is a single value");
    return new OutputKey(path, step.path("format").path("type").asText().equals("upsert"));
  }

  static Layout.Path path(Layout layout, JsonNode parts, String operator) {
    List<String> names = texts(parts);
    Layout.Path path = layout.find(names.toArray(String[]::new));
    if (path == null)
      throw new PlanException("UNKNOWN_COLUMN", "cannot plan " + operator + ": there is no column '"
          + String.join(".", names) + "', only " + String.join(", ", layout.schema().fieldNames()));
    return path;
  }

  private static String quote(String name) {
    return "`" + name.replace("`", "``") + "`";
  }
}
