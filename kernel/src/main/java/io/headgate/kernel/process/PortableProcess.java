package io.headgate.kernel.process;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.headgate.kernel.json.KeyText;
import io.headgate.kernel.json.KeyValues;
import io.headgate.kernel.plan.FlowPlan;
import io.headgate.kernel.plan.PortableState;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.AbstractDataType;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.jdk.javaapi.CollectionConverters;

/**
 * All that a process function holds as plain columns and back, a row for each key. Uses internals of Spark seen in 4.3.0.
 *
 * <p>The columns: {@code key} as text, {@code row} and {@code expires} (see {@link PortableLayout}), and {@code timers}, an array
 * of {@code time} and {@code event_time}. Entries of state have the number of their variable before the key.
 */
public final class PortableProcess implements Serializable {
  private static final StructType ENTRY =
      new StructType().add("key", DataTypes.BinaryType).add("value", DataTypes.BinaryType);
  private static final String PAGE = "STRUCT<place: BINARY, value: BINARY>";
  private static final String TIMER = "STRUCT<time: BIGINT, event_time: BOOLEAN>";
  private static final byte STATE = 0;
  // The years 1 to 9999, which Python's times can show.
  private static final long FIRST = -62_135_596_800_000L;
  private static final long LAST = 253_402_300_799_999L;

  private final PortableLayout layout;
  private final StructType row;
  private final StructType expires;
  private final StructType key;
  private final boolean hasTimers;
  private transient MessageDigest sum;
  private transient KeyValues values;
  private transient KeyText text;
  private transient SegmentedRow columns;
  private transient UnsafeProjection packKey;

  private PortableProcess(
      PortableLayout layout, StructType row, StructType expires, StructType key, boolean hasTimers) {
    this.layout = layout;
    this.row = row;
    this.expires = expires;
    this.key = key;
    this.hasTimers = hasTimers;
  }

  /** @param json {@code history}, {@code row}, {@code expires}, and {@code states}, each with its kind and time to live */
  public static PortableProcess of(String json) {
    return of(json, new StructType(), true);
  }

  /** Returns the form of an operator of a flow, which knows the key's columns. */
  public static PortableProcess of(String json, FlowPlan plan, String operator) {
    ProcessSpec spec = ((ProcessProcessor) plan.operator(operator).processor()).spec();
    return of(json, spec.keys(), spec.timers());
  }

  private static PortableProcess of(String json, StructType key, boolean hasTimers) {
    JsonNode process;
    try {
      process = new ObjectMapper().readTree(json);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("not a process: " + e.getMessage(), e);
    }
    var history = new ArrayList<StructType>();
    for (JsonNode each : process.get("history")) history.add(type(each));
    var layout = new PortableLayout(new StateSchemas(history), process.get("states"));
    return new PortableProcess(layout, type(process.get("row")), type(process.get("expires")), key, hasTimers);
  }

  private static StructType type(JsonNode json) {
    return (StructType) DataType.fromJson(json.toString());
  }

  /** Returns state, {@code key} and {@code value}, as plain columns; a struct without fields is left out. */
  public Dataset<Row> unpack(Dataset<Row> held) {
    Dataset<Row> state = held.filter("substring(key, 1, 1) = X'00'").selectExpr("substring(key, 2) AS key", "value");
    Dataset<Row> records = state.filter("substring(key, 1, 1) = X'00'").selectExpr(
        "substring(key, 2) AS key", "value AS record", "CAST(NULL AS " + PAGE + ") AS page", "CAST(NULL AS " + TIMER + ") AS timer");
    Dataset<Row> pages = state.filter("substring(key, 1, 1) = X'01'").selectExpr(
        "substring(key, 6, length(key) - 14) AS key", "CAST(NULL AS BINARY) AS record",
        "struct(substring(key, length(key) - 8) AS place, value) AS page", "CAST(NULL AS " + TIMER + ") AS timer");
    Dataset<Row> timed = held.filter("substring(key, 1, 1) IN (X'01', X'02')");
    Dataset<Row> timers = timed.select(
        timed.col("value").as("key"), functions.expr("CAST(NULL AS BINARY)").as("record"),
        functions.expr("CAST(NULL AS " + PAGE + ")").as("page"),
        functions.struct(
            call("timeOf", DataTypes.LongType, timed.col("key")).as("time"),
            functions.expr("substring(key, 1, 1) = X'01'").as("event_time")).as("timer"));
    Dataset<Row> keys = records.union(pages).union(timers).groupBy("key").agg(
        functions.expr("max(record)").as("record"), functions.expr("array_sort(collect_list(page))").as("pages"),
        functions.expr("array_sort(collect_list(timer))").as("timers"));
    // Without states, or without any that expires, there is no such column.
    StructType both = new StructType();
    if (row.length() > 0) both = both.add("row", row.asNullable());
    if (expires.length() > 0) both = both.add("expires", expires.asNullable());
    Dataset<Row> rows = keys.select(
        keys.col("key").cast(DataTypes.StringType).as("key"),
        call("rowOf", both, self(), keys.col("record"), keys.col("pages")).as("held"), keys.col("timers"));
    var out = new ArrayList<String>(List.of("key"));
    if (row.length() > 0) out.add("held.row");
    if (expires.length() > 0) out.add("held.expires");
    out.add("timers");
    return rows.selectExpr(out.toArray(String[]::new));
  }

  /**
   * Returns plain columns as state.
   *
   * @param now what expires, and has no time for it, does so as if it were written then
   */
  public Dataset<Row> pack(Dataset<Row> rows, long now) {
    Column entries = call("entriesOf", new ArrayType(ENTRY, false), self(), rows.col("key"), rows.col("row"),
        rows.col("expires"), rows.col("timers"), functions.lit(now));
    return rows.select(functions.inline(entries));
  }

  /** Returns the key of each row, and as {@code problem} why it cannot be taken; null where it can. */
  public Dataset<Row> check(Dataset<Row> rows) {
    return rows.select(rows.col("key"), call("problemOf", DataTypes.StringType, self(), rows.col("key"), rows.col("row"),
        rows.col("expires"), rows.col("timers")).as("problem"));
  }

  private Column self() {
    return ExpressionUtils.column(new Literal(this, new ObjectType(PortableProcess.class)));
  }

  private static Column call(String method, DataType type, Column... arguments) {
    var list = Arrays.stream(arguments).map(c -> (Expression) ExpressionUtils.expression(c)).toList();
    return ExpressionUtils.column(new StaticInvoke(
        PortableProcess.class, type, method, CollectionConverters.asScala(list).toSeq(),
        CollectionConverters.asScala(List.<AbstractDataType>of()).toSeq(), false, true, true, scala.Option.empty()));
  }

  // Called by generated code. Each task has its own copy of the form.

  public static Long timeOf(byte[] entry) {
    return TimeIndex.timeOf(Arrays.copyOfRange(entry, 1, entry.length));
  }

  public static InternalRow rowOf(PortableProcess form, byte[] record, ArrayData pages) {
    return form.layout.row(record, pages);
  }

  public static ArrayData entriesOf(
      PortableProcess form, UTF8String text, InternalRow row, InternalRow expires, ArrayData timers, long now) {
    byte[] key = text.getBytes();
    var out = new ArrayList<Object>();
    if (form.sum == null) form.sum = TimeIndex.digest();
    Long due = form.layout.write(key, row, expires, now, (entry, value) -> out.add(entry(STATE, entry, value)));
    if (due != null) out.add(form.timed(Emitted.EXPIRY, due, key));
    for (int i = 0; timers != null && i < timers.numElements(); i++) {
      InternalRow timer = timers.getStruct(i, 2);
      out.add(form.timed(timer.getBoolean(1) ? Emitted.EVENT_TIME : Emitted.PROCESSING_TIME, timer.getLong(0), key));
    }
    return new GenericArrayData(out.toArray());
  }

  private InternalRow timed(int kind, long time, byte[] key) {
    return entry((byte) (kind + 1), TimeIndex.entry(time, key, sum), key);
  }

  private static InternalRow entry(byte variable, byte[] key, byte[] value) {
    byte[] named = ByteBuffer.allocate(1 + key.length).put(variable).put(key).array();
    return new GenericInternalRow(new Object[] {named, value});
  }

  /** Returns why a row cannot be taken, as the end of a sentence; null if it can. */
  public static UTF8String problemOf(
      PortableProcess form, UTF8String key, InternalRow row, InternalRow expires, ArrayData timers) {
    String problem = form.problemOfKey(key);
    if (problem == null && row != null) {
      String empty = PortableState.findNull(row, form.row, "row.");
      problem = empty == null ? form.problemOfStates(row, expires) : "column '" + empty + "' is null, and must not be";
    }
    if (problem == null && timers != null) problem = form.problemOfTimers(timers);
    return problem == null ? null : UTF8String.fromString(problem);
  }

  private String problemOfKey(UTF8String given) {
    if (given == null) return "its key is null";
    if (key.length() == 1 && key.fields()[0].dataType() instanceof StringType) return null;
    String own = own(given.getBytes());
    if (own == null) return "its key must be of " + key.toDDL();
    return own.equals(given.toString()) ? null : "its key must be written as '" + own + "'";
  }

  /** Returns a key as state would have it; null if it does not fit the columns. */
  private String own(byte[] given) {
    if (key.length() == 0) return "[]";
    if (values == null) {
      Layout columnsOfKey = Layout.of(key);
      values = new KeyValues(Arrays.stream(key.fields()).map(StructField::dataType).toList());
      text = new KeyText(Arrays.stream(key.fieldNames()).map(columnsOfKey::find).toList());
      columns = new SegmentedRow(columnsOfKey);
      packKey = UnsafeProjection.create(key.asNullable());
    }
    Object[] parts = new Object[key.length()];
    try {
      values.read(given, parts);
    } catch (RuntimeException e) {
      return null;
    }
    columns.set(packKey.apply(new GenericInternalRow(parts)));
    byte[] own = text.of(columns);
    return own == null ? null : UTF8String.fromBytes(own).toString();
  }

  private String problemOfStates(InternalRow row, InternalRow expires) {
    for (int i = 0; i < layout.states().size(); i++) {
      PortableLayout.State state = layout.states().get(i);
      if (state.kind() == PortableLayout.Kind.VALUE || row.isNullAt(i)) continue;
      ArrayData entries = row.getArray(i);
      if (layout.expiries(expires, i) instanceof ArrayData all && all.numElements() != entries.numElements())
        return "'row." + state.name() + "' has " + entries.numElements() + " entries, and 'expires." + state.name() + "' "
            + all.numElements();
      if (state.kind() == PortableLayout.Kind.MAP && hasTwice(entries, i))
        return "a key of map 'row." + state.name() + "' occurs twice";
    }
    return null;
  }

  private boolean hasTwice(ArrayData entries, int i) {
    var element = (StructType) ((ArrayType) row.fields()[i].dataType()).elementType();
    var seen = new HashSet<ByteBuffer>();
    for (int j = 0; j < entries.numElements(); j++) {
      byte[] key = PortableLayout.encoded(entries.getStruct(j, 2), element.fields()[0].dataType());
      if (!seen.add(ByteBuffer.wrap(key))) return true;
    }
    return false;
  }

  private String problemOfTimers(ArrayData timers) {
    if (!hasTimers && timers.numElements() > 0) return "it has timers, and the function has no on_timer";
    for (int i = 0; i < timers.numElements(); i++) {
      InternalRow timer = timers.isNullAt(i) ? null : timers.getStruct(i, 2);
      if (timer == null || timer.isNullAt(0) || timer.isNullAt(1))
        return "column 'timers[" + i + "]' has a null, and must not";
      if (timer.getLong(0) < FIRST || timer.getLong(0) > LAST)
        return "'timers[" + i + "].time' must be in the years 1 to 9999, in milliseconds since 1970";
    }
    return null;
  }
}
