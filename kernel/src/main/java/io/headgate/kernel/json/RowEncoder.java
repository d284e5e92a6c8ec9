package io.headgate.kernel.json;

import io.headgate.kernel.rows.SegmentedRow;
import java.io.Serializable;

/** Makes the bytes of an output's record of a row; one encoder serves one thread. */
public interface RowEncoder extends Serializable {
  /** @throws BadRecord where the format has no form for the row */
  byte[] encode(SegmentedRow row) throws BadRecord;

  /** Asks other systems what it needs to know, once before the first batch, on the driver. */
  default void atStart() {}
}
