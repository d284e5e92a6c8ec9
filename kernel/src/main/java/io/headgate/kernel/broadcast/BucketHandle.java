package io.headgate.kernel.broadcast;

import java.util.function.Supplier;

/** A handle of state that keeps the present bucket by itself, which Spark's does not. */
public interface BucketHandle {
  /** Has what is called read the state of a bucket. */
  <T> T within(Integer bucket, Supplier<T> read);
}
