package io.headgate.kernel.joins;

import io.headgate.kernel.process.StateUpgrade;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The schemas that the rows of both sides have had, so that rows of an older one still read.
 *
 * <p>A history is known where Python knows the types of all columns. The form, a number made of the present columns, protects
 * the rest: state of other columns is refused.
 */
public final class JoinSchemas implements Serializable {
  private final String name;
  private final StateUpgrade[] sides = new StateUpgrade[2];
  private final int form;

  /**
   * @param name how errors call the operator
   * @param history structs of {@code left} and {@code right}, the last is the present one; empty where it is not known
   */
  public JoinSchemas(String name, StructType left, StructType right, List<StructType> history) {
    this.name = name;
    sides[JoinRow.LEFT] = upgrade(history, "left", left);
    sides[JoinRow.RIGHT] = upgrade(history, "right", right);
    form = 31 * left.asNullable().sql().hashCode() + right.asNullable().sql().hashCode();
  }

  private static StateUpgrade upgrade(List<StructType> history, String side, StructType present) {
    var schemas = new ArrayList<StructType>();
    for (StructType each : history.subList(0, Math.max(0, history.size() - 1)))
      schemas.add((StructType) each.apply(side).dataType());
    // The present one is what arrives; what the history says of it has the defaults of its fields.
    if (history.isEmpty()) schemas.add(present);
    else schemas.add(withDefaults(present, (StructType) history.get(history.size() - 1).apply(side).dataType()));
    return new StateUpgrade(schemas);
  }

  private static StructType withDefaults(StructType present, StructType described) {
    StructType out = new StructType();
    for (StructField field : present.fields()) {
      StructField known = described.getFieldIndex(field.name()).isDefined() ? described.apply(field.name()) : field;
      out = out.add(new StructField(field.name(), field.dataType(), field.nullable(), known.metadata()));
    }
    return out;
  }

  /** Returns the columns of a side. */
  StructType schema(int side) {
    return sides[side].schema();
  }

  int current() {
    return sides[0].current();
  }

  int form() {
    return form;
  }

  /** Refuses rows that cannot be read, by the schema number and form that they were stored with. */
  void check(int version, int stored) {
    if (version > current() || version == current() && stored != form)
      throw new IllegalStateException(
          "STATE_INCOMPATIBLE: cannot read state of " + name + ": its rows were stored with other columns");
  }

  /** Gives a row of an older schema the present one. */
  void upgrade(JoinRow row, int version) {
    byte[] old = new byte[row.length];
    System.arraycopy(row.bytes, row.start, old, 0, row.length);
    row.bytes = sides[row.side].present(version, old, 0).getBytes();
    row.start = 0;
    row.length = row.bytes.length;
  }
}
