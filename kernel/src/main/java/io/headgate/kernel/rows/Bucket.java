package io.headgate.kernel.rows;

import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.unsafe.Platform;

/**
 * Many keys that an operator looks after together.
 *
 * <p>Spark keeps a timer in two places and asks for each before it writes: for every key that costs more than the key's own
 * state. A bucket has one timer for all its keys. How many buckets there are is part of what state looks like.
 */
public final class Bucket {
  public static final int COUNT = 1024;

  private static final long SEED = 42;
  private static final byte[][] ALL =
      IntStream.range(0, COUNT).mapToObj(i -> new byte[] {(byte) (i >> 8), (byte) i}).toArray(byte[][]::new);

  private Bucket() {}

  /** Returns the bucket of a key, as what rows are spread by; not to be written to. */
  public static byte[] of(byte[] key) {
    return ALL[(int) (XXH64.hashUnsafeBytes(key, Platform.BYTE_ARRAY_OFFSET, key.length, SEED) & (COUNT - 1))];
  }
}
