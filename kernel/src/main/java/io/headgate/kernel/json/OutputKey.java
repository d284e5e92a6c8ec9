package io.headgate.kernel.json;

import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.io.Serializable;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.types.StringType;

/** The key of a message: the text of one column, as {@link KeyText} has it, and never in quotes. */
public final class OutputKey implements Serializable {
  private final KeyText text;
  private final boolean plain;
  private final boolean exact;

  /** @param exact whether a text that {@link MessageKey} would take for JSON is written as JSON, so that a table reads it back */
  public OutputKey(Layout.Path column, boolean exact) {
    this.exact = exact;
    text = new KeyText(List.of(column));
    plain = column.type() instanceof StringType;
  }

  /** Returns the key of a row, or null if the column is null. */
  public byte[] of(SegmentedRow row) {
    byte[] key = text.of(row);
    // A time or a date is a JSON string; a string of the user's may begin with a quote of its own.
    if (key != null && plain && exact && MessageKey.isJson(key, 0, key.length)) return JsonText.quotedText(key);
    if (key == null || plain || key[0] != '"') return key;
    return Arrays.copyOfRange(key, 1, key.length - 1);
  }
}
