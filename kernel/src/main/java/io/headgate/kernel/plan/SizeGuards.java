package io.headgate.kernel.plan;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.ArrayInsert;
import org.apache.spark.sql.catalyst.expressions.ArrayRepeat;
import org.apache.spark.sql.catalyst.expressions.BinaryPad;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.FormatNumber;
import org.apache.spark.sql.catalyst.expressions.FormatString;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Sequence;
import org.apache.spark.sql.catalyst.expressions.StringLPad;
import org.apache.spark.sql.catalyst.expressions.StringRPad;
import org.apache.spark.sql.catalyst.expressions.StringRepeat;
import org.apache.spark.sql.catalyst.expressions.StringSpace;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.CalendarIntervalType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.YearMonthIntervalType;
import scala.Function1;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Puts a check of {@link SizeLimits} before each function whose result may be much larger than its arguments.
 *
 * <p>One argument of the function, {@code a}, becomes {@code if(check(…), a, null)}. The check is null where one of its
 * arguments is, and then so is the function. Uses internals of Spark seen in 4.3.0.
 */
public final class SizeGuards extends AbstractPartialFunction<Expression, Expression> {
  private static final long MICROS_PER_DAY = 86_400_000_000L;
  private static final long DAYS_PER_MONTH = 28;

  private SizeGuards() {}

  /** Returns a plan with checks in its expressions; it must not have been optimized, which computes what is constant. */
  static LogicalPlan add(LogicalPlan analyzed) {
    return (LogicalPlan) analyzed.transformExpressionsUp(new SizeGuards());
  }

  /** Returns a query with checks in the expressions of all its nodes and subqueries; it must not have been optimized. */
  public static LogicalPlan addToAll(LogicalPlan analyzed) {
    return (LogicalPlan) analyzed.transformAllExpressionsWithSubqueries(new SizeGuards());
  }

  @Override public boolean isDefinedAt(Expression e) {
    return true;
  }

  @Override @SuppressWarnings("unchecked")
  public <A1 extends Expression, B1> B1 applyOrElse(A1 e, Function1<A1, B1> otherwise) {
    return (B1) guarded(e, CollectionConverters.asJava(e.children()));
  }

  private static Expression guarded(Expression e, List<Expression> of) {
    if (e instanceof StringSpace) return guard(e, 0, "text", of.get(0));
    if (e instanceof StringRepeat) return guard(e, 1, "repeated", of.get(0), of.get(1));
    if (e instanceof StringLPad || e instanceof StringRPad || e instanceof BinaryPad)
      return guard(e, 1, "padded", of.get(0), of.get(1), of.get(2));
    if (e instanceof FormatString) return guard(e, 0, "format", of.get(0));
    if (e instanceof FormatNumber && of.get(1).dataType() instanceof IntegerType) return guard(e, 1, "text", of.get(1));
    if (e instanceof ArrayInsert) return guard(e, 1, "place", of.get(1));
    if (e instanceof ArrayRepeat) return elements(e, of);
    if (e instanceof Sequence) return sequence(e, of);
    return e;
  }

  private static Expression guard(Expression e, int at, String check, Expression... arguments) {
    return guard(e, at, call(check, true, arguments));
  }

  private static Expression guard(Expression e, int at, Expression check) {
    var children = new ArrayList<>(CollectionConverters.asJava(e.children()));
    Expression argument = children.get(at);
    children.set(at, new If(check, argument, Literal.create(null, argument.dataType())));
    return (Expression) e.withNewChildren(CollectionConverters.asScala(children).toSeq());
  }

  private static Expression elements(Expression e, List<Expression> of) {
    DataType type = of.get(0).dataType();
    boolean large = type instanceof StringType || type instanceof BinaryType || type instanceof ArrayType
        || type instanceof MapType || type instanceof StructType;
    Expression element = large ? of.get(0) : Literal.create(null, DataTypes.StringType);
    // Null elements are counted as others are.
    return guard(e, 1, call("elements", false, element, of.get(1)));
  }

  private static Expression sequence(Expression e, List<Expression> of) {
    DataType type = of.get(0).dataType();
    Expression start = of.get(0);
    Expression stop = of.get(1);
    boolean whole = type instanceof IntegralType;
    double micro = type instanceof DateType ? 1.0 / MICROS_PER_DAY : 1;
    if (of.size() < 3)
      return guard(e, 1, "sequence", start, stop, Literal.create(1L, DataTypes.LongType), real(whole ? 1 : micro * MICROS_PER_DAY));
    DataType step = of.get(2).dataType();
    double unit = whole ? 1 : step instanceof YearMonthIntervalType ? micro * MICROS_PER_DAY * DAYS_PER_MONTH : micro;
    return guard(e, 1, "sequence", start, stop, of.get(2), real(step instanceof CalendarIntervalType ? micro : unit));
  }

  private static Expression real(double value) {
    return Literal.create(value, DataTypes.DoubleType);
  }

  private static Expression call(String check, boolean propagateNull, Expression... arguments) {
    return new StaticInvoke(
        SizeLimits.class, DataTypes.BooleanType, check, seq(arguments), seq(), propagateNull, false, true, scala.Option.empty());
  }

  @SafeVarargs
  private static <T> Seq<T> seq(T... values) {
    return CollectionConverters.asScala(Arrays.asList(values)).toSeq();
  }
}
