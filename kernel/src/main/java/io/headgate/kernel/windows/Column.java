package io.headgate.kernel.windows;

import io.headgate.kernel.json.JsonEncoder;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;

/** The column that an aggregate looks at. */
record Column(Layout.Path path) implements Serializable {
  /** The ordinal of a column that is its holder: a table's row that enrich attached, which is never null. */
  static final int WHOLE = -1;

  /** Returns the struct that holds the value, or null where the value is null. */
  InternalRow holder(SegmentedRow row) {
    if (ordinal() == WHOLE) return row.segment(path.segment());
    InternalRow at = JsonEncoder.descend(row.segment(path.segment()), path);
    return at == null || at.isNullAt(path.last()) ? null : at;
  }

  /** Returns where in the holder the value is. */
  int ordinal() {
    return path.ordinals().length == 0 ? WHOLE : path.last();
  }

  DataType type() {
    return path.type();
  }
}
