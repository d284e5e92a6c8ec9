package io.headgate.kernel.plan;

import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BindReferences;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InterpretedMutableProjection;
import org.apache.spark.sql.catalyst.expressions.package$;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A SQL condition over one row that arrives as data, interpreted.
 *
 * <p>A {@link RowProgram} is compiled once for a flow, into a class; of rules there may be thousands, which come and go. For one
 * thread at a time. Uses internals of Spark seen in 4.3.0.
 */
public final class RuleCondition {
  private final List<RowProgram.Stage> stages;
  /** Null once one has failed: some functions keep what they failed on. */
  private List<InterpretedMutableProjection> before;
  private Expression last;

  RuleCondition(List<RowProgram.Stage> stages) {
    this.stages = stages;
  }

  /** Returns whether it holds for a row; a condition that is null does not. Throws what Spark does where it fails. */
  public boolean holds(InternalRow row) {
    if (last == null) bind();
    InternalRow at = row;
    try {
      for (InterpretedMutableProjection stage : before) at = stage.apply(at);
      return Boolean.TRUE.equals(last.eval(at));
    } catch (Exception e) {
      last = null;
      throw e;
    }
  }

  private void bind() {
    int end = stages.size() - 1;
    before = stages.subList(0, end).stream().map(RuleCondition::projection).toList();
    RowProgram.Stage stage = stages.get(end);
    last = BindReferences.bindReference(copies(stage).get(0), package$.MODULE$.AttributeSeq(stage.input()), false);
  }

  private static InterpretedMutableProjection projection(RowProgram.Stage stage) {
    return new InterpretedMutableProjection(CollectionConverters.asScala(copies(stage)).toSeq(), stage.input());
  }

  private static List<Expression> copies(RowProgram.Stage stage) {
    return CollectionConverters.asJava(stage.expressions()).stream().map(e -> (Expression) e.clone()).toList();
  }
}
