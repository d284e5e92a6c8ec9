package io.headgate.kernel.rolling;

import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.JsonEncoder;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.LocalDate;
import java.time.temporal.ChronoUnit;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampType;

/**
 * The folders of a row's partition, {@code day=2026-11-19/shop=7}: names and values are escaped as Hive and Spark do, and a null is
 * {@code __HIVE_DEFAULT_PARTITION__}.
 */
public final class PartitionPath implements Serializable {
  private static final String NULL = "__HIVE_DEFAULT_PARTITION__";
  /** Of a name of a folder, on most file systems. */
  private static final int LONGEST = 255;

  private final String[] names;
  private final Layout.Path[] paths;

  /** @param names the columns, outermost first */
  public PartitionPath(List<String> names, List<Layout.Path> paths) {
    this.names = names.stream().map(name -> escaped(name) + "=").toArray(String[]::new);
    this.paths = paths.toArray(Layout.Path[]::new);
  }

  /** Returns whether values of a type have a text that folders can be named after. */
  public static boolean takes(DataType type) {
    return type instanceof StringType || type instanceof IntegralType || type instanceof BooleanType || type instanceof DateType
        || type instanceof TimestampType || type instanceof DecimalType;
  }

  /** @throws BadRecord where a value is too long for the name of a folder */
  public byte[] of(SegmentedRow row) throws BadRecord {
    var out = new StringBuilder();
    for (int c = 0; c < paths.length; c++) {
      if (c > 0) out.append('/');
      int from = out.length();
      out.append(names[c]).append(value(row, paths[c]));
      // No character has more bytes than three for each of Java's.
      if ((out.length() - from) * 3 > LONGEST && out.substring(from).getBytes(StandardCharsets.UTF_8).length > LONGEST)
        throw new BadRecord(BadRecord.Reason.ROW_FAILED, "the value of column '" + paths[c].name()
            + "' is too long for the name of a folder, which has at most " + LONGEST + " bytes");
    }
    return out.toString().getBytes(StandardCharsets.UTF_8);
  }

  private static String value(SegmentedRow row, Layout.Path path) {
    InternalRow at = JsonEncoder.descend(row.segment(path.segment()), path);
    if (at == null || at.isNullAt(path.last())) return NULL;
    String text = text(at, path.last(), path.type());
    // Readers take an empty name for null, too.
    return text.isEmpty() ? NULL : escaped(text);
  }

  private static String text(InternalRow row, int i, DataType type) {
    if (type instanceof StringType) return row.getUTF8String(i).toString();
    if (type instanceof BooleanType) return Boolean.toString(row.getBoolean(i));
    if (type instanceof DateType) return LocalDate.ofEpochDay(row.getInt(i)).toString();
    if (type instanceof TimestampType) return Instant.EPOCH.plus(row.getLong(i), ChronoUnit.MICROS).toString();
    if (type instanceof DecimalType d) return row.getDecimal(i, d.precision(), d.scale()).toJavaBigDecimal().toPlainString();
    if (type instanceof ByteType) return Byte.toString(row.getByte(i));
    if (type instanceof ShortType) return Short.toString(row.getShort(i));
    if (type instanceof IntegerType) return Integer.toString(row.getInt(i));
    return Long.toString(row.getLong(i));
  }

  /** Spark's own escapes all but NUL, which no file system has. */
  private static String escaped(String text) {
    return ExternalCatalogUtils.escapePathName(text).replace("\0", "%00");
  }
}
