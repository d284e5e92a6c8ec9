package io.headgate.kernel.state;

import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.MessageKey;
import io.headgate.kernel.rows.Layout;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.spark.sql.types.StructType;

/** Reads a key that somebody typed: the same forms as in a message key. */
final class TypedKey implements Serializable {
  private static final String OPENING = "is not the table's: ";

  private final StructType columns;

  TypedKey(StructType columns) {
    this.columns = columns;
  }

  /** Returns the key as state has it; says what is wrong with one that does not fit the columns. */
  byte[] read(String text) {
    // All rows have one key where there is no column.
    if (columns.length() == 0) return "[]".getBytes(StandardCharsets.UTF_8);
    Layout layout = Layout.of(columns);
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    try {
      return new MessageKey(columns, Arrays.stream(columns.fieldNames()).map(layout::find).toList())
          .of(bytes, 0, bytes.length);
    } catch (BadRecord e) {
      String told = e.getMessage();
      throw new IllegalArgumentException(told.substring(Math.max(0, told.indexOf(OPENING) + OPENING.length())));
    }
  }
}
