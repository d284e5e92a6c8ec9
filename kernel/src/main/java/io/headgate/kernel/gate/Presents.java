package io.headgate.kernel.gate;

import org.apache.spark.sql.connector.read.streaming.Offset;

/** A stream that can tell where a position lies today, if what it was a position in has been made anew since. */
public interface Presents {
  Offset present(Offset at);

  /**
   * Returns what of a target is left to reach; what is gone for good is not. Where records may not be lost, this ends the query.
   *
   * @param from where reading goes on, as it was logged
   */
  default Offset left(Offset target, Offset from) {
    return target;
  }
}
