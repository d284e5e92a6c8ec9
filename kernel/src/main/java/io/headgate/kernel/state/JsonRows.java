package io.headgate.kernel.state;

import io.headgate.kernel.CodedFailure;
import io.headgate.kernel.json.JsonEncoder;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.AbstractDataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.jdk.javaapi.CollectionConverters;

/** Rows of any query as JSON, in the form that outputs have. Uses internals of Spark seen in 4.3.0. */
public final class JsonRows implements Serializable {
  /** The most bytes of all rows of an answer; the text of a longer answer would not be shown, and may not fit into memory. */
  private static final long MOST_BYTES = 16 << 20;

  private final StructType schema;
  private final JsonEncoder encoder;
  private transient UnsafeProjection pack;
  private transient SegmentedRow row;
  private transient long bytes;

  private JsonRows(StructType schema, JsonEncoder encoder) {
    this.schema = schema;
    this.encoder = encoder;
  }

  /** Returns one column of text: an object for each row, whose fields are the columns' numbers, since names may repeat. */
  public static Dataset<Row> of(Dataset<Row> rows) {
    List<String> names = IntStream.range(0, rows.columns().length).mapToObj(Integer::toString).toList();
    Dataset<Row> numbered = rows.toDF(names.toArray(String[]::new));
    var columns = new ArrayList<Column>();
    for (String each : names) {
      Column column = numbered.col(each);
      columns.add(hasForm(numbered.schema(), each) ? column : column.cast(DataTypes.StringType).as(each));
    }
    Dataset<Row> plain = numbered.select(columns.toArray(Column[]::new));
    Layout layout = Layout.of(plain.schema().asNullable());
    var form = new JsonRows(layout.base(), new JsonEncoder(names, names.stream().map(layout::find).toList()));
    List<Expression> arguments = List.of(
        new Literal(form, new ObjectType(JsonRows.class)),
        ExpressionUtils.expression(functions.struct(names.stream().map(plain::col).toArray(Column[]::new))));
    return plain.select(ExpressionUtils.column(new StaticInvoke(
        JsonRows.class, DataTypes.StringType, "textOf", CollectionConverters.asScala(arguments).toSeq(),
        CollectionConverters.asScala(List.<AbstractDataType>of()).toSeq(), false, true, true, scala.Option.empty())).as("row"));
  }

  private static boolean hasForm(StructType schema, String name) {
    try {
      new JsonEncoder(List.of(name), List.of(Layout.of(schema).find(name)));
      return true;
    } catch (IllegalArgumentException e) {
      return false;
    }
  }

  // Called by generated code.

  public static UTF8String textOf(JsonRows form, InternalRow from) {
    if (form.pack == null) {
      form.pack = UnsafeProjection.create(form.schema);
      form.row = new SegmentedRow(Layout.of(form.schema));
    }
    form.row.set(form.pack.apply(from));
    byte[] text = form.encoder.encode(form.row);
    form.bytes += text.length;
    if (form.bytes > MOST_BYTES)
      throw new CodedFailure(CodedFailure.ANSWER_TOO_LARGE, "the answer is larger than " + (MOST_BYTES >> 20) + " MiB");
    return UTF8String.fromBytes(text);
  }
}
