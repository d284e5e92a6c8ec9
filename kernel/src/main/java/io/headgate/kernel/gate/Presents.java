package io.headgate.kernel.gate;

import org.apache.spark.sql.connector.read.streaming.Offset;

/** A stream that can tell where a position lies today, if what it was a position in has been made anew since. */
public interface Presents {
  Offset present(Offset at);
}
