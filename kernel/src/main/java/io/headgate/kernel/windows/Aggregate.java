package io.headgate.kernel.windows;

import io.headgate.kernel.rows.Layout;
import java.io.Serializable;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.StructField;

/**
 * One figure of a window.
 *
 * @param name the column its value becomes
 * @param kind as the flow names it
 * @param column null to count events
 * @param limit how many values are collected at most
 */
public record Aggregate(String name, String kind, Layout.Path column, int limit) implements Serializable {
  private static final int MOST_DIGITS = 38;
  private static final int MORE_DIGITS = 10;

  /** Returns the type of its value, or null where the column's does not fit. */
  public DataType result() {
    if (kind.equals("count")) return DataTypes.LongType;
    DataType type = column.type();
    if ((kind.equals("collect") ? Value.kept(type) : Value.of(type)) == null) return null;
    return switch (kind) {
      case "count-distinct", "approx-count-distinct" -> DataTypes.LongType;
      case "sum" -> sum(type);
      case "avg" -> Numbers.real(type) == null ? null : DataTypes.DoubleType;
      case "min", "max", "first", "last" -> type;
      case "collect" -> DataTypes.createArrayType(type, false);
      default -> throw new IllegalArgumentException("unknown aggregate " + kind);
    };
  }

  private static DataType sum(DataType type) {
    if (type instanceof IntegralType) return DataTypes.LongType;
    if (type instanceof FloatType || type instanceof DoubleType) return DataTypes.DoubleType;
    if (type instanceof DecimalType d)
      return DataTypes.createDecimalType(Math.min(MOST_DIGITS, d.precision() + MORE_DIGITS), d.scale());
    return null;
  }

  StructField field() {
    boolean nullable = !kind.startsWith("count") && !kind.equals("approx-count-distinct") && !kind.equals("collect");
    return DataTypes.createStructField(name, result(), nullable);
  }

  /** Returns whether it matters in which order events are taken. */
  boolean isOrdered() {
    return switch (kind) {
      // Sums of fractions differ in their last digits; of rows at one place the last one counts.
      case "collect", "avg", "first", "last" -> true;
      case "sum" -> result() == DataTypes.DoubleType;
      default -> false;
    };
  }

  /** Returns what tells the form of its state from others'. */
  String form() {
    return kind + ":" + (column == null ? "" : column.type().sql());
  }

  Accumulator open() {
    if (kind.equals("count")) return new Count(isAlways() ? null : over());
    return switch (kind) {
      case "sum" -> openSum();
      case "avg" -> new RealSum(over(), true);
      case "min" -> new Extreme(over(), false);
      case "max" -> new Extreme(over(), true);
      case "first" -> new Edge(over(), false);
      case "last" -> new Edge(over(), true);
      case "count-distinct" -> new Distinct(over());
      case "approx-count-distinct" -> new ApproximateDistinct(over());
      case "collect" -> new Collect(over(), limit);
      default -> throw new IllegalArgumentException("unknown aggregate " + kind);
    };
  }

  private Accumulator openSum() {
    if (column.type() instanceof IntegralType) return new WholeSum(over());
    return result() instanceof DecimalType to ? new DecimalSum(over(), to) : new RealSum(over(), false);
  }

  /** Returns whether there is a value in every event; a table's row that enrich attached is no column that could be null. */
  private boolean isAlways() {
    return column == null || column.ordinals().length == 0;
  }

  private Column over() {
    return new Column(column);
  }
}
