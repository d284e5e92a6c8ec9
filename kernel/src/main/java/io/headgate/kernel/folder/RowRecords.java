package io.headgate.kernel.folder;

import io.headgate.kernel.json.BadRecord;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** The rows of a part of a file, packed in the declared columns. */
final class RowRecords implements FileRecords {
  private final FolderRecord form;
  private final RowFiles.Rows rows;
  private final UnsafeProjection pack;
  private long place;

  RowRecords(RowFiles files, DataFile file, FolderSplit.Range range, FolderRecord form, StructType declared)
      throws IOException, BadRecord {
    this.form = form;
    StructType columns = SchemaFit.common(declared, files.schema(file));
    pack = projection(declared, columns);
    rows = files.open(file, range.from(), range.to(), columns);
  }

  /** Returns what makes a row of the declared columns of one of the file's. */
  private static UnsafeProjection projection(StructType declared, StructType columns) throws BadRecord {
    List<String> there = Arrays.asList(columns.fieldNames());
    var absent = new StructType();
    for (StructField field : declared.fields()) if (!there.contains(field.name())) absent = absent.add(field);
    UnsafeRow defaults = Absent.defaults(absent);
    var out = new ArrayList<Expression>();
    for (StructField field : declared.fields()) {
      int at = there.indexOf(field.name());
      DataType type = field.dataType();
      if (at < 0) out.add(Literal.create(defaults.get(absent.fieldIndex(field.name()), type), type));
      else out.add(widened(new BoundReference(at, columns.fields()[at].dataType(), true), type));
    }
    return UnsafeProjection.create(CollectionConverters.asScala(out).toSeq());
  }

  private static Expression widened(Expression from, DataType to) {
    DataType wanted = to.asNullable();
    if (from.dataType().asNullable().equals(wanted)) return from;
    return new Cast(from, wanted, Option.apply("UTC"), EvalMode$.MODULE$.ANSI());
  }

  @Override public byte[] next() throws IOException {
    if (!rows.next()) return null;
    UnsafeRow row = pack.apply(rows.row());
    int size = row.getSizeInBytes();
    byte[] record = form.make(rows.number(), size, size);
    Platform.copyMemory(
        row.getBaseObject(), row.getBaseOffset(), record, Platform.BYTE_ARRAY_OFFSET + record.length - size, size);
    place = rows.number() + 1;
    return record;
  }

  @Override public long place() {
    return place;
  }

  @Override public void close() throws IOException {
    rows.close();
  }
}
