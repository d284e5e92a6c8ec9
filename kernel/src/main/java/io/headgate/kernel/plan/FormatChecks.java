package io.headgate.kernel.plan;

import java.util.Formatter;
import java.util.IllegalFormatException;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.FormatString;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Refuses a {@code format_string} whose format does not fit its arguments: Spark checks neither their types nor their number, and
 * every row would fail. As seen in Spark 4.3.0.
 */
final class FormatChecks {
  private FormatChecks() {}

  /** @param what opening words of the error, which name the operator and the expression */
  static void check(Expression expression, String what) {
    if (expression instanceof FormatString) checkFormat(CollectionConverters.asJava(expression.children()), what);
    for (Expression child : CollectionConverters.asJava(expression.children())) check(child, what);
  }

  private static void checkFormat(List<Expression> children, String what) {
    String format = constant(children.get(0));
    if (format == null) return;
    Object[] none = new Object[children.size() - 1];
    String problem = problem(format, none);
    if (problem != null)
      throw new PlanException("BAD_EXPRESSION", what + " fails on every row: format_string: " + problem,
          "give format_string one argument for each % of its format");
    for (int i = 0; i < none.length; i++) {
      // Null fits every conversion, so that each argument is tried alone.
      Object[] one = none.clone();
      Expression argument = children.get(i + 1);
      one[i] = sample(argument.dataType());
      if (problem(format, one) != null)
        throw new PlanException("BAD_EXPRESSION",
            what + " fails on every row: '" + argument.sql() + "' is " + argument.dataType().sql()
                + ", which does not fit the format '" + format + "'",
            "format it as text with %s, or cast it: CAST(" + argument.sql() + " AS BIGINT) for %d, AS DOUBLE for %f");
    }
  }

  /** Returns the text of a format that is the same for every row and makes no large result; null for others. */
  private static String constant(Expression format) {
    if (!format.foldable()) return null;
    try {
      return format.eval(null) instanceof UTF8String text && SizeLimits.format(text) ? text.toString() : null;
    } catch (RuntimeException e) {
      // What is constant and fails is refused when the plan is optimized.
      return null;
    }
  }

  /** Returns why arguments cannot be formatted, or null. */
  private static String problem(String format, Object[] arguments) {
    try (var formatter = new Formatter(Locale.US)) {
      formatter.format(format, arguments);
      return null;
    } catch (IllegalFormatException e) {
      return e.getMessage();
    }
  }

  /** Returns a value of the class that Spark hands to the formatter for a type. */
  private static Object sample(DataType type) {
    if (type instanceof NullType) return null;
    return switch (CodeGenerator.boxedType(type)) {
      case "Boolean" -> true;
      case "Byte" -> (byte) 0;
      case "Short" -> (short) 0;
      case "Integer" -> 0;
      case "Long" -> 0L;
      case "Float" -> 0f;
      case "Double" -> 0d;
      case "UTF8String" -> UTF8String.EMPTY_UTF8;
      case "Decimal" -> new Decimal();
      default -> new Object();
    };
  }
}
