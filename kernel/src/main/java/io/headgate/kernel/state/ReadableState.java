package io.headgate.kernel.state;

import io.headgate.kernel.joins.JoinProcessor;
import io.headgate.kernel.joins.JoinState;
import io.headgate.kernel.json.JsonEncoder;
import io.headgate.kernel.operators.DedupeProcessor;
import io.headgate.kernel.operators.SeenTimes;
import io.headgate.kernel.plan.FlowPlan;
import io.headgate.kernel.plan.PortableState;
import io.headgate.kernel.process.ProcessEntries;
import io.headgate.kernel.process.ProcessProcessor;
import io.headgate.kernel.process.ProcessSpec;
import io.headgate.kernel.process.ProcessState;
import io.headgate.kernel.process.StateSchemas;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import io.headgate.kernel.windows.WindowProcessor;
import io.headgate.kernel.windows.WindowRows;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.AbstractDataType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** An operator's state as people read it: keys they type, rows with columns. Uses internals of Spark seen in 4.3.0. */
public final class ReadableState implements Serializable {
  private final Form form;
  private final StructType key;

  private ReadableState(Form form, StructType key) {
    this.form = form;
    this.key = key;
  }

  /**
   * Returns the state of an operator that keeps a table; rows of older schemas have the present one.
   *
   * @param copied whether each task has a copy of the table
   */
  public static ReadableState table(String json, boolean copied) {
    PortableState table = PortableState.of(json);
    return new ReadableState(copied ? new CopiedTable(table.form()) : table.form(), table.keyColumns());
  }

  /** Returns the state of an operator that keeps windows. */
  public static ReadableState windows(FlowPlan plan, String operator) {
    var rows = new WindowRows(((WindowProcessor) plan.operator(operator).processor()).spec());
    return new ReadableState(rows, rows.key());
  }

  /**
   * Returns the state of an operator that keeps when keys were seen.
   *
   * @param paths the ways to the key's columns in the operator's events
   */
  public static ReadableState seen(FlowPlan plan, String operator, List<List<String>> paths) {
    Layout events = ((DedupeProcessor) plan.operator(operator).processor()).layout();
    StructType key = new StructType();
    for (List<String> path : paths) {
      Layout.Path found = events.find(path.toArray(String[]::new));
      key = key.add(new StructField(found.name(), found.type(), false, org.apache.spark.sql.types.Metadata.empty()));
    }
    return new ReadableState(new SeenTimes(key), key);
  }

  /** Returns the state of a join; rows of older schemas have the present one. */
  public static ReadableState join(FlowPlan plan, String operator) {
    var rows = new JoinState(((JoinProcessor) plan.operator(operator).processor()).spec());
    return new ReadableState(rows, rows.key());
  }

  /** Returns the state of a process function; records and pages of older schemas have the present one. */
  public static ReadableState process(FlowPlan plan, String operator) {
    ProcessSpec spec = ((ProcessProcessor) plan.operator(operator).processor()).spec();
    StructType key = new StructType(spec.key().toArray(StructField[]::new));
    return new ReadableState(new ProcessState(key, spec.state()), key);
  }

  /**
   * Returns the state of a process function by its schemas.
   *
   * @param key the key's columns, as Spark's JSON
   * @param history every schema that the state has had
   */
  public static ReadableState process(String key, List<String> history) {
    var schemas = new StateSchemas(history.stream().map(each -> (StructType) DataType.fromJson(each)).toList());
    StructType columns = (StructType) DataType.fromJson(key);
    return new ReadableState(new ProcessState(columns, schemas), columns);
  }

  /** Returns the key's columns, as Spark's JSON. */
  public String keyColumns() {
    return key.json();
  }

  /** Returns a key that somebody typed as state has it, or says what is wrong with it. */
  public byte[] key(String text) {
    return new TypedKey(key).read(text);
  }

  /** Returns where the state of a key is looked up; {@code scratch} is a folder for what is unpacked meanwhile. */
  public KeyLookup lookUp(SparkSession spark, String variable, byte[] key, String scratch) {
    return new KeyLookup(spark, variable, form, key, scratch);
  }

  /**
   * Returns what a key holds, as JSON; null where it was deleted.
   *
   * @param lookup where the value was found, at this version of the operator's state
   * @param now when that was, in epoch milliseconds
   */
  public String describe(
      byte[] key, byte[] value, KeyLookup lookup, String operator, long version, List<String> ids, long now) {
    InternalRow row = form.read(key, value, lookup.entries(operator, version, ids), now);
    if (row == null) return null;
    StructType schema = form.schema();
    Layout layout = Layout.of(schema);
    List<String> names = List.of(schema.fieldNames());
    var segments = new SegmentedRow(layout);
    segments.set(UnsafeProjection.create(schema.asNullable()).apply(row));
    byte[] json = new JsonEncoder(names, names.stream().map(layout::find).toList()).encode(segments);
    return new String(json, StandardCharsets.UTF_8);
  }

  /**
   * Returns state, {@code key} and {@code value}, as rows; keys that were deleted are left out.
   *
   * @param now as of when, in epoch milliseconds
   */
  public Dataset<Row> rows(Dataset<Row> held, long now) {
    Dataset<Row> keys = ProcessEntries.without(held);
    if (form instanceof ProcessState process) keys = ProcessEntries.ofKeys(held, process.hasPages());
    if (form instanceof JoinState) keys = ProcessEntries.ofKeys(held, true);
    Column row = call("rowOf", form.schema().asNullable(),
        ExpressionUtils.column(new Literal(this, new ObjectType(ReadableState.class))),
        keys.col("key"), keys.col("value"), keys.col("pages"), functions.lit(now));
    Dataset<Row> all = keys.select(row.as("row"));
    return all.filter(all.col("row").isNotNull()).select("row.*");
  }

  private static Column call(String method, DataType type, Column... arguments) {
    var list = Arrays.stream(arguments).map(c -> (Expression) ExpressionUtils.expression(c)).toList();
    Seq<AbstractDataType> types = CollectionConverters.asScala(List.<AbstractDataType>of()).toSeq();
    return ExpressionUtils.column(new StaticInvoke(
        ReadableState.class, type, method, CollectionConverters.asScala(list).toSeq(), types, false, true, true,
        scala.Option.empty()));
  }

  // Called by generated code.

  public static InternalRow rowOf(ReadableState state, byte[] key, byte[] value, ArrayData pages, long now) {
    return state.form.read(key, value, names -> ProcessEntries.find(pages, names), now);
  }
}
