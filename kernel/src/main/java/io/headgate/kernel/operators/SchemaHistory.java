package io.headgate.kernel.operators;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Every schema the rows of a table have had, so that state of an older one still reads.
 *
 * <p>Version n is the n-th schema, counted from 1; the last is the present one. Columns are only ever added.
 */
public final class SchemaHistory implements Serializable {
  private final List<StructType> schemas;
  private final UnsafeRow added;
  private transient Map<Integer, UnsafeProjection> upgrades;

  /** @param added a row of the present schema that holds the defaults of columns an old row lacks */
  public SchemaHistory(List<StructType> schemas, UnsafeRow added) {
    this.schemas = new ArrayList<>(schemas);
    this.added = added;
  }

  public int current() {
    return schemas.size();
  }

  /** Returns state whose row has the present schema; the same bytes where it has already. */
  public byte[] present(byte[] state) {
    int version = TableRow.schemaVersion(state);
    if (version == current()) return state;
    if (upgrades == null) upgrades = new HashMap<>();
    StructType old = schemas.get(version - 1);
    UnsafeRow row = new UnsafeRow(old.length());
    int body = TableRow.body(state);
    row.pointTo(state, Platform.BYTE_ARRAY_OFFSET + body, state.length - body);
    byte[] upgraded = upgrades.computeIfAbsent(version, v -> projection(old)).apply(row).getBytes();
    byte[] out = new byte[body + upgraded.length];
    System.arraycopy(state, 0, out, 0, body);
    System.arraycopy(upgraded, 0, out, body, upgraded.length);
    return out;
  }

  private UnsafeProjection projection(StructType old) {
    StructType now = schemas.get(schemas.size() - 1);
    var columns = new ArrayList<Expression>();
    for (int i = 0; i < now.length(); i++) {
      StructField field = now.fields()[i];
      int at = List.of(old.fieldNames()).indexOf(field.name());
      columns.add(at >= 0
          ? new BoundReference(at, field.dataType(), true)
          : new Literal(added.get(i, field.dataType()), field.dataType()));
    }
    return UnsafeProjection.create(CollectionConverters.asScala(columns).toSeq());
  }
}
