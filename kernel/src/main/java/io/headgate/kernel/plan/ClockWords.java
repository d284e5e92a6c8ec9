package io.headgate.kernel.plan;

import java.util.List;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.optimizer.ReplaceExpressions;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Finds words that Spark reads as the time at which it plans a query, such as {@code TIMESTAMP 'now'} and
 * {@code CAST('today' AS DATE)}: they mean another time after every start. As seen in Spark 4.3.0.
 */
final class ClockWords {
  private static final String WORD = "\\s*(now|today|tomorrow|yesterday)\\b.*";
  private static final Pattern VALUE = Pattern.compile(WORD, Pattern.CASE_INSENSITIVE | Pattern.DOTALL);
  /** Such a literal is a plain time as soon as it is parsed, so only its text tells. */
  private static final Pattern LITERAL = Pattern.compile(
      ".*\\b(date|timestamp(_ntz|_ltz)?)\\s*(/\\*.*?\\*/\\s*)*['\"]" + WORD, Pattern.CASE_INSENSITIVE | Pattern.DOTALL);

  private ClockWords() {}

  /** @param analyzed what Spark made of the expressions */
  static boolean areIn(List<String> expressions, LogicalPlan analyzed) {
    if (expressions.stream().anyMatch(e -> LITERAL.matcher(e).matches())) return true;
    return CollectionConverters.asJava(ReplaceExpressions.apply(analyzed).expressions()).stream()
        .anyMatch(each -> each.exists(ClockWords::isClock));
  }

  private static boolean isClock(Expression expression) {
    if (!(expression instanceof Cast cast) || !(cast.child().dataType() instanceof StringType) || !cast.child().foldable())
      return false;
    boolean toTime = cast.dataType() instanceof DateType || cast.dataType() instanceof TimestampType
        || cast.dataType() instanceof TimestampNTZType;
    Object text = toTime ? cast.child().eval(null) : null;
    return text != null && VALUE.matcher(text.toString()).matches();
  }
}
