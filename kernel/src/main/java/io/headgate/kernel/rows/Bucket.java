package io.headgate.kernel.rows;

import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.Platform;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What rows are spread and sorted by: the number of the bucket that their key is in. Operators look after its keys together.
 *
 * <p>Spark sorts the rows of a task by what they are spread by. Numbers it sorts by their digits, and of bytes it would compare
 * every pair. And it keeps a timer in two places and asks for each before it writes: for every key that costs more than the
 * key's own state, so that a bucket has one timer for all its keys. How many buckets there are is part of what state looks
 * like.
 */
public final class Bucket {
  public static final int COUNT = 4096;

  private static final long SEED = 42;
  private static final long MASK = COUNT - 1;
  private static final Integer[] ALL = IntStream.range(0, COUNT).boxed().toArray(Integer[]::new);

  private Bucket() {}

  /** Returns the bucket of a key. */
  public static Integer of(byte[] key) {
    return ALL[(int) (XXH64.hashUnsafeBytes(key, Platform.BYTE_ARRAY_OFFSET, key.length, SEED) & MASK)];
  }

  /** Returns the bucket of a key for an operator that has fewer: their number is a power of two. */
  public static Integer of(byte[] key, int count) {
    return ALL[of(key) & count - 1];
  }

  /** Returns the partition of a bucket: Spark spreads rows by the same expression, as seen in 4.3.0. */
  public static int partition(Integer bucket, int partitions) {
    List<Expression> keys = List.of(Literal.create(bucket, DataTypes.IntegerType));
    return (int) new HashPartitioning(CollectionConverters.asScala(keys).toSeq(), partitions).partitionIdExpression()
        .eval(null);
  }

  /** Returns the bucket of rows without a key that stay in order: those of one partition of a source share it. */
  public static Integer ofPartition(Header header) {
    return ALL[(int) (XXH64.hashLong(header.partition, header.source) & MASK)];
  }

  /** Returns the same for an operator that has fewer buckets. */
  public static Integer ofPartition(Header header, int count) {
    return ALL[ofPartition(header) & count - 1];
  }

  /**
   * Returns a bucket for a row whose order means nothing: they spread over tasks, and a replay puts each where it was.
   *
   * <p>Its offset alone would not do: a log may leave its lower digits the same in all records.
   */
  public static Integer spread(Header header) {
    return ALL[(int) (XXH64.hashLong(header.offset, header.partition) & MASK)];
  }

  /** Returns a bucket for a row that goes anywhere: rows of one record spread as well, and a replay puts each where it was. */
  public static Integer anywhere(Header header) {
    long hash = XXH64.hashLong(header.offset, header.source);
    hash = XXH64.hashLong(header.partition, hash);
    hash = XXH64.hashLong(header.sequence, hash);
    return ALL[(int) (XXH64.hashLong(header.ordinal, hash) & MASK)];
  }

  /** Returns the same for an operator that has fewer buckets. */
  public static Integer anywhere(Header header, int count) {
    return ALL[anywhere(header) & count - 1];
  }

  /** Returns where release 0.7 put a row without a key; see {@link io.headgate.kernel.plan.Placement}. */
  public static Integer ofOffset(long offset) {
    return ALL[(int) (offset & MASK)];
  }
}
