package io.headgate.kernel.plan;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.headgate.kernel.json.KeyText;
import io.headgate.kernel.operators.LogPosition;
import io.headgate.kernel.operators.SchemaHistory;
import io.headgate.kernel.operators.TableRow;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import io.headgate.kernel.state.Form;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The rows that an operator holds of a table, as plain columns and back. Uses internals of Spark seen in 4.3.0.
 *
 * <p>The columns: {@code key} as text, {@code deleted}, {@code lane}, {@code sequence} and {@code timestamp} of the change
 * (null in a row that counts as older than any change), {@code position}, its place in a database's log (null without one), and {@code row}, null where the row is deleted.
 */
public final class PortableState implements Serializable {
  // What a row has that no change brought: any change of its key takes its place.
  private static final int OLDEST_LANE = Integer.MIN_VALUE;
  private static final long OLDEST = Long.MIN_VALUE;

  private final StructType schema;
  private final SchemaHistory history;
  private final KeyText key;
  private final UnsafeRow defaults;
  private transient UnsafeProjection pack;
  private transient SegmentedRow segments;

  private PortableState(StructType schema, SchemaHistory history, KeyText key, UnsafeRow defaults) {
    this.schema = schema;
    this.history = history;
    this.key = key;
    this.defaults = defaults;
  }

  /** @param json {@code history}, every schema the table has had, and {@code key}, its key columns */
  public static PortableState of(String json) {
    JsonNode table;
    try {
      table = new ObjectMapper().readTree(json);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("not a table: " + e.getMessage(), e);
    }
    var schemas = new ArrayList<StructType>();
    for (JsonNode each : table.get("history")) schemas.add(FlowPlan.schema(each));
    StructType now = schemas.get(schemas.size() - 1);
    UnsafeRow defaults = FlowPlan.empty(now);
    return new PortableState(now, new SchemaHistory(schemas, defaults),
        new KeyText(FlowPlan.paths(Layout.of(now), table.get("key"))), defaults);
  }

  /** Returns how the row of one key is read. */
  public Form form() {
    return new TableForm(this);
  }

  private record TableForm(PortableState state) implements Form {
    @Override public StructType schema() {
      return state.schema;
    }

    @Override public InternalRow read(byte[] key, byte[] value) {
      return rowOf(state, value);
    }
  }

  /** Returns the key's columns. */
  public StructType keyColumns() {
    return new StructType(key.columns().stream().map(schema::apply).toArray(StructField[]::new));
  }

  /** Returns state, {@code key} and {@code value}, as plain columns; rows of older schemas have the present one. */
  public Dataset<Row> unpack(Dataset<Row> held) {
    Column value = held.col("value");
    return held.select(
        held.col("key").cast(DataTypes.StringType).as("key"),
        call("deletedOf", DataTypes.BooleanType, value).as("deleted"),
        call("laneOf", DataTypes.IntegerType, value).as("lane"),
        call("sequenceOf", DataTypes.LongType, value).as("sequence"),
        call("timestampOf", DataTypes.LongType, value).as("timestamp"),
        call("positionOf", DataTypes.BinaryType, value).as("position"),
        call("rowOf", schema.asNullable(), self(), value).as("row"));
  }

  /** Returns plain columns as state; a row without a key gets that of its columns. */
  public Dataset<Row> pack(Dataset<Row> rows) {
    Column oldest = rows.col("lane").isNull().or(rows.col("sequence").isNull()).or(rows.col("timestamp").isNull());
    return rows.select(
        key(rows).cast(DataTypes.BinaryType).as("key"),
        call("packed", DataTypes.BinaryType, self(),
            functions.coalesce(rows.col("deleted"), functions.lit(false)),
            functions.when(oldest, OLDEST_LANE).otherwise(rows.col("lane")),
            functions.when(oldest, OLDEST).otherwise(rows.col("sequence")),
            functions.when(oldest, OLDEST).otherwise(rows.col("timestamp")),
            rows.col("position"),
            rows.col("row")).as("value"));
  }

  /** Returns the key and version of each row, and as {@code problem} why it cannot be taken; null where it can. */
  public Dataset<Row> check(Dataset<Row> rows) {
    return rows.select(
        key(rows).as("key"), rows.col("lane"), rows.col("sequence"), rows.col("timestamp"),
        call("problemOf", DataTypes.StringType, self(), rows.col("key"),
            functions.coalesce(rows.col("deleted"), functions.lit(false)), rows.col("position"), rows.col("row")).as("problem"));
  }

  /** Returns what a column holds in a row that does not bring it. */
  public Column defaultOf(String column) {
    return ExpressionUtils.column(new Literal(defaults, schema.asNullable())).getField(column);
  }

  /** Returns the default of the only column of a schema, as Spark's JSON. */
  public static Column constant(String json) {
    StructType type = (StructType) DataType.fromJson(json);
    return ExpressionUtils.column(new Literal(FlowPlan.empty(type), type.asNullable())).getField(type.fieldNames()[0]);
  }

  private Column key(Dataset<Row> rows) {
    return functions.coalesce(rows.col("key"), call("keyOf", DataTypes.StringType, self(), rows.col("row")));
  }

  private Column self() {
    return ExpressionUtils.column(new Literal(this, new ObjectType(PortableState.class)));
  }

  private static Column call(String method, DataType type, Column... arguments) {
    var list = Arrays.stream(arguments).map(c -> (Expression) ExpressionUtils.expression(c)).toList();
    return ExpressionUtils.column(new StaticInvoke(
        PortableState.class, type, method, CollectionConverters.asScala(list).toSeq(),
        CollectionConverters.asScala(new ArrayList<org.apache.spark.sql.types.AbstractDataType>()).toSeq(),
        false, true, true, scala.Option.empty()));
  }

  // Called by generated code. Each task has its own copy of the state's form.

  public static Boolean deletedOf(byte[] state) {
    return TableRow.isDeleted(state);
  }

  public static Integer laneOf(byte[] state) {
    return isOldest(state) ? null : TableRow.lane(state);
  }

  public static Long sequenceOf(byte[] state) {
    return isOldest(state) ? null : TableRow.sequence(state);
  }

  public static Long timestampOf(byte[] state) {
    return isOldest(state) ? null : TableRow.timestamp(state);
  }

  public static byte[] positionOf(byte[] state) {
    return TableRow.position(state);
  }

  public static InternalRow rowOf(PortableState form, byte[] state) {
    if (TableRow.isDeleted(state)) return null;
    byte[] present = form.history.present(state);
    UnsafeRow row = new UnsafeRow(form.schema.length());
    int body = TableRow.body(present);
    row.pointTo(present, Platform.BYTE_ARRAY_OFFSET + (long) body, present.length - body);
    return row;
  }

  public static byte[] packed(
      PortableState form, boolean deleted, int lane, long sequence, long timestamp, byte[] position, InternalRow row) {
    var change = new TableRow.Change(deleted, lane, sequence, timestamp, position);
    int version = form.history.current();
    if (deleted) return TableRow.of(version, change, null, 0, 0);
    byte[] bytes = form.pack(row).getBytes();
    return TableRow.of(version, change, bytes, 0, bytes.length);
  }

  /** Returns the key that a row's columns make; null without a row, or where one of them is null. */
  public static UTF8String keyOf(PortableState form, InternalRow row) {
    if (row == null) return null;
    if (form.segments == null) form.segments = new SegmentedRow(Layout.of(form.schema));
    form.segments.set(form.pack(row));
    byte[] key = form.key.of(form.segments);
    return key == null ? null : UTF8String.fromBytes(key);
  }

  /** Returns why a row cannot be taken, as the end of a sentence; null if it can. */
  public static UTF8String problemOf(
      PortableState form, UTF8String key, boolean deleted, byte[] position, InternalRow row) {
    UTF8String own = keyOf(form, row);
    String problem = null;
    if (position != null && !LogPosition.isValid(position)) {
      problem = "its position is not one that was written here; null means none";
    } else if (deleted) {
      if (key == null && own == null) problem = "it is deleted and has no key";
    } else if (row == null) {
      problem = "its row is null, and it is not deleted";
    } else {
      String empty = findNull(row, form.schema, "row.");
      if (empty != null) problem = "column '" + empty + "' is null, and must not be";
      else if (own == null) problem = "a key column of its row is null";
      else if (key != null && !key.equals(own)) problem = "its row is of key '" + own + "'";
    }
    return problem == null ? null : UTF8String.fromString(problem);
  }

  private static boolean isOldest(byte[] state) {
    return TableRow.lane(state) == OLDEST_LANE && TableRow.sequence(state) == OLDEST && TableRow.timestamp(state) == OLDEST;
  }

  private UnsafeRow pack(InternalRow row) {
    if (pack == null) pack = UnsafeProjection.create(schema.asNullable());
    return pack.apply(row);
  }

  /** Returns the path of a value that is null where none may be, or null. */
  public static String findNull(InternalRow row, StructType type, String prefix) {
    for (int i = 0; i < type.length(); i++) {
      StructField field = type.fields()[i];
      String found = findNull(row, i, field.dataType(), field.nullable(), prefix + field.name());
      if (found != null) return found;
    }
    return null;
  }

  private static String findNull(SpecializedGetters holder, int i, DataType type, boolean nullable, String path) {
    if (holder.isNullAt(i)) return nullable ? null : path;
    if (type instanceof StructType struct) return findNull(holder.getStruct(i, struct.length()), struct, path + ".");
    if (type instanceof ArrayType list)
      return findNull(holder.getArray(i), list.elementType(), list.containsNull(), path);
    if (type instanceof MapType map) {
      MapData entries = holder.getMap(i);
      return findNull(entries.valueArray(), map.valueType(), map.valueContainsNull(), path);
    }
    return null;
  }

  private static String findNull(ArrayData values, DataType type, boolean nullable, String path) {
    for (int i = 0; i < values.numElements(); i++) {
      String found = findNull(values, i, type, nullable, path + "[" + i + "]");
      if (found != null) return found;
    }
    return null;
  }
}
