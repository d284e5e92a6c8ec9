package io.headgate.kernel.plan;

import io.headgate.kernel.joins.JoinProcessor;
import io.headgate.kernel.process.ProcessProcessor;
import io.headgate.kernel.process.ProcessSpec;
import io.headgate.kernel.rows.Bucket;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.HeldEntry;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Packed rows as columns of a DataFrame and back, for functions of the user's and for state that is taken over. Uses internals
 * of Spark seen in 4.3.0.
 */
public final class PackedColumns {
  /** The column that carries a row's envelope past a function. */
  static final String ORIGIN = "__headgate";

  /** The column that Spark's watermark stands on. */
  static final String TIME = "__time";

  private static final ThreadLocal<Map<String, UnsafeProjection>> PACKERS = ThreadLocal.withInitial(HashMap::new);

  private PackedColumns() {}

  static String quote(String name) {
    return "`" + name.replace("`", "``") + "`";
  }

  static Column address(Column envelope) {
    return call("addressOf", DataTypes.IntegerType, ExpressionUtils.expression(envelope));
  }

  /** Returns the bucket of a key. */
  static Column bucket(Column key) {
    return call("bucketOf", DataTypes.IntegerType, ExpressionUtils.expression(key));
  }

  /** Returns the bucket of a process operator's entry. */
  static Column processBucket(Column key, Column value) {
    return call("processBucketOf", DataTypes.IntegerType, ExpressionUtils.expression(key), ExpressionUtils.expression(value));
  }

  /** Returns the bucket of a join's entry. */
  static Column joinBucket(Column key) {
    return call("joinBucketOf", DataTypes.IntegerType, ExpressionUtils.expression(key));
  }

  /** Returns whether a process operator's entry is a row of its broadcast table. */
  static Column isBroadcast(Column key) {
    return call("isBroadcastOf", DataTypes.BooleanType, ExpressionUtils.expression(key));
  }

  /** Returns a key and what state holds of it in one. */
  static Column entry(Column key, Column value) {
    return call("entryOf", DataTypes.BinaryType, ExpressionUtils.expression(key), ExpressionUtils.expression(value));
  }

  static Column unpack(Column envelope, Layout layout) {
    if (layout.segments() > 1)
      return call("joined", layout.schema(), ExpressionUtils.expression(envelope),
          new Literal(layout, new ObjectType(Layout.class)));
    return call("unpacked", layout.schema(), ExpressionUtils.expression(envelope),
        Literal.create(layout.width(0), DataTypes.IntegerType));
  }

  static Column pack(Column struct, StructType schema) {
    return call("packed", DataTypes.BinaryType, ExpressionUtils.expression(struct),
        Literal.create(schema.json(), DataTypes.StringType));
  }

  private static Column call(String method, DataType type, Expression... arguments) {
    return ExpressionUtils.column(new StaticInvoke(
        PackedColumns.class, type, method, seq(arguments), seq(), true, true, true, scala.Option.empty()));
  }

  @SafeVarargs
  private static <T> Seq<T> seq(T... values) {
    return CollectionConverters.asScala(Arrays.asList(values)).toSeq();
  }

  // Called by generated code.

  /** Returns the address a row of a stream goes to; -1 for a row that goes to no function. */
  public static int addressOf(byte[] envelope) {
    return Envelope.kind(envelope) == Envelope.EVENT ? Envelope.address(envelope) : -1;
  }

  public static int bucketOf(byte[] key) {
    return Bucket.of(key);
  }

  public static int processBucketOf(byte[] key, byte[] value) {
    return Bucket.of(ProcessProcessor.keyOf(key, value), ProcessSpec.BUCKETS);
  }

  public static boolean isBroadcastOf(byte[] key) {
    return ProcessProcessor.isBroadcast(key);
  }

  public static int joinBucketOf(byte[] key) {
    return Bucket.of(JoinProcessor.keyOf(key));
  }

  public static byte[] entryOf(byte[] key, byte[] value) {
    return HeldEntry.pack(key, value);
  }

  public static InternalRow unpacked(byte[] envelope, int width) {
    UnsafeRow row = new UnsafeRow(width);
    row.pointTo(envelope, Platform.BYTE_ARRAY_OFFSET + (long) Envelope.start(envelope, 0), Envelope.length(envelope, 0));
    return row;
  }

  public static InternalRow joined(byte[] envelope, Layout layout) {
    var row = new SegmentedRow(layout);
    row.read(envelope);
    return row;
  }

  public static byte[] packed(InternalRow row, UTF8String schema) {
    return PACKERS.get()
        .computeIfAbsent(schema.toString(),
            s -> UnsafeProjection.create(((StructType) DataType.fromJson(s)).asNullable()))
        .apply(row).getBytes();
  }
}
