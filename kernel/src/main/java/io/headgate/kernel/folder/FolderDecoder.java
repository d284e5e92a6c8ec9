package io.headgate.kernel.folder;

import com.fasterxml.jackson.databind.JsonNode;
import io.headgate.kernel.formats.Formats;
import io.headgate.kernel.formats.Lines;
import io.headgate.kernel.formats.RecordDecoder;
import io.headgate.kernel.formats.csv.CsvDecoder;
import io.headgate.kernel.formats.csv.CsvShape;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.rows.RawRecord;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Turns a record of a folder into a row: its own values by the format's decoder, and those in the names of folders.
 *
 * <p>The bytes it is given are those of a whole {@link RawRecord}, of which the value is a part.
 */
public final class FolderDecoder implements RecordDecoder {
  private final StructType schema;
  private final PartitionValues partitions;
  private final RecordDecoder inner;
  private transient UnsafeProjection join;
  private transient JoinedRow joined;
  /** Null for other formats than CSV. */
  private final CsvShape csv;
  /** The columns of the last file that has its own, and their decoder. */
  private transient byte[] columns;
  private transient RecordDecoder byColumns;
  private transient byte[] path;
  private transient UnsafeRow values;

  private FolderDecoder(StructType schema, List<String> columns, RecordDecoder inner, CsvShape csv) {
    this.schema = schema;
    this.inner = inner;
    this.csv = csv;
    partitions = columns.isEmpty() ? null : new PartitionValues(schema, columns);
  }

  /**
   * @param format the format's {@code type} and options
   * @param columns the columns whose values are in the names of folders
   * @param key the key of a table's rows; null for a stream
   * @param name the source's name for people
   */
  public static FolderDecoder of(JsonNode format, StructType schema, List<String> columns, List<String> key, String name) {
    StructType own = own(schema, columns);
    String type = format.path("type").asText();
    RecordDecoder inner = RowFiles.reads(type) ? new PackedDecoder(own) : Formats.decoder(format, own, key, Lines.NONE, name);
    return new FolderDecoder(schema, columns, inner, type.equals("csv") ? CsvShape.of(format) : null);
  }

  /** Returns the columns whose values are in files. */
  static StructType own(StructType schema, List<String> columns) {
    var own = new StructType();
    for (var field : schema.fields()) if (!columns.contains(field.name())) own = own.add(field);
    return own;
  }

  @Override public boolean isTombstone() {
    return inner.isTombstone();
  }

  @Override public UnsafeRow decode(byte[] from, int start, int length) throws BadRecord {
    if (FolderRecord.isRefused(from))
      throw new BadRecord(FolderRecord.reason(from), where(from, new String(from, start, length, StandardCharsets.UTF_8)));
    UnsafeRow row;
    try {
      row = decoder(from).decode(from, start, length);
    } catch (BadRecord e) {
      throw new BadRecord(e.reason, where(from, e.getMessage()));
    }
    return partitions == null ? row : join(from, row);
  }

  private RecordDecoder decoder(byte[] record) throws BadRecord {
    int length = csv == null ? 0 : FolderRecord.columnsLength(record);
    if (length <= 0) return inner;
    int start = FolderRecord.columnsStart(record);
    if (columns == null || !Arrays.equals(columns, 0, columns.length, record, start, start + length)) {
      columns = Arrays.copyOfRange(record, start, start + length);
      var shape = new CsvShape(csv.delimiter(), csv.quote(), csv.nulls(), CsvColumns.parse(columns, csv));
      StructType own = partitions == null ? schema : own(schema, List.of(partitions.schema().fieldNames()));
      byColumns = new CsvDecoder(shape, own);
    }
    return byColumns;
  }

  private static String where(byte[] record, String why) {
    return why + "; in file " + new String(
        record, FolderRecord.pathStart(record), FolderRecord.pathLength(record), StandardCharsets.UTF_8);
  }

  private UnsafeRow join(byte[] record, UnsafeRow row) throws BadRecord {
    int start = FolderRecord.pathStart(record);
    int length = FolderRecord.pathLength(record);
    if (path == null || !Arrays.equals(path, 0, path.length, record, start, start + length)) {
      path = Arrays.copyOfRange(record, start, start + length);
      values = partitions.of(new String(path, StandardCharsets.UTF_8)).copy();
    }
    if (join == null) prepare();
    return join.apply(joined.apply(row, values));
  }

  /** Puts the columns in their declared order. A tombstone has nulls where the schema has none. */
  private void prepare() {
    StructType own = own(schema, List.of(partitions.schema().fieldNames()));
    var expressions = new ArrayList<Expression>();
    List<String> names = List.of(own.fieldNames());
    for (var field : schema.fields()) {
      int at = names.indexOf(field.name());
      int place = at >= 0 ? at : own.length() + partitions.schema().fieldIndex(field.name());
      expressions.add(new BoundReference(place, field.dataType(), true));
    }
    join = UnsafeProjection.create(CollectionConverters.asScala(expressions).toSeq());
    joined = new JoinedRow();
  }

  @Override public byte[] shown(byte[] from, int start, int length) {
    if (FolderRecord.isRefused(from)) return null;
    return inner.shown(from, start, length);
  }
}
