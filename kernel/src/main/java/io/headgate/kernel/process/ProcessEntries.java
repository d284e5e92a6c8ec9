package io.headgate.kernel.process;

import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.expressions.Window;
import org.apache.spark.sql.functions;

/** The entries of process functions in state, brought together by key; for people who read state. */
public final class ProcessEntries {
  /** The end of a page's name: the number of its list or map, and its own, big endian. */
  private static final int PLACE = 9;
  private static final int FIELDS = 2;
  private static final String NO_PAGES = "CAST(NULL AS ARRAY<STRUCT<place: BINARY, value: BINARY>>) AS pages";

  private ProcessEntries() {}

  /**
   * Returns {@code key}, {@code value} and {@code pages} of each key, those sorted by {@code place}.
   *
   * @param held the entries of the operator's {@code state}, {@code key} and {@code value}
   */
  public static Dataset<Row> ofKeys(Dataset<Row> held, boolean hasPages) {
    Dataset<Row> records =
        held.filter("substring(key, 1, 1) = X'00'").selectExpr("substring(key, 2) AS key", "value");
    if (!hasPages) return without(records);
    Dataset<Row> pages = held.filter("substring(key, 1, 1) = X'01'").selectExpr(
        "substring(key, 6, length(key) - 14) AS key", "substring(key, length(key) - 8) AS place", "value");
    // No row shows more: of a key with millions of pages, only as many may come into memory.
    var ofOne = Window.partitionBy(pages.col("key"), functions.substring(pages.col("place"), 1, 1)).orderBy(pages.col("place"));
    Dataset<Row> first = pages.withColumn("n", functions.row_number().over(ofOne))
        .filter("n <= " + ProcessState.MOST).groupBy("key")
        .agg(functions.expr("array_sort(collect_list(struct(place, value)))").as("pages"));
    return records.join(first, records.col("key").equalTo(first.col("key")), "left_outer")
        .select(records.col("key"), records.col("value"), first.col("pages"));
  }

  /** Returns {@code key} and {@code value} with an empty column {@code pages}. */
  public static Dataset<Row> without(Dataset<Row> held) {
    return held.selectExpr("key", "value", NO_PAGES);
  }

  /** Returns pages by their names in state; null for one that is not among them. */
  public static byte[][] find(ArrayData pages, List<byte[]> names) {
    byte[][] out = new byte[names.size()][];
    if (pages == null) return out;
    for (int i = 0; i < out.length; i++) {
      byte[] name = names.get(i);
      out[i] = find(pages, Arrays.copyOfRange(name, name.length - PLACE, name.length));
    }
    return out;
  }

  private static byte[] find(ArrayData pages, byte[] place) {
    int low = 0;
    int high = pages.numElements() - 1;
    while (low <= high) {
      int middle = (low + high) >>> 1;
      InternalRow page = pages.getStruct(middle, FIELDS);
      int order = Arrays.compareUnsigned(page.getBinary(0), place);
      if (order == 0) return page.getBinary(1);
      if (order < 0) low = middle + 1;
      else high = middle - 1;
    }
    return null;
  }
}
