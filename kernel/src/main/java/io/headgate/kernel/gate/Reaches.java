package io.headgate.kernel.gate;

import org.apache.spark.sql.connector.read.streaming.Offset;

/** A position that can tell whether it lies at or behind a target. */
public interface Reaches {
  boolean reaches(Offset target);
}
