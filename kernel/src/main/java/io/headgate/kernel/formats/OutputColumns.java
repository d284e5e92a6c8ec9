package io.headgate.kernel.formats;

import com.fasterxml.jackson.databind.JsonNode;
import io.headgate.kernel.plan.PlanException;
import io.headgate.kernel.rows.Layout;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * What the records of an output are written of.
 *
 * @param output the output's name for people
 * @param names the columns' names in records, in order
 * @param paths the ways to them
 * @param type their types; a value may be null where anything on its way may
 */
public record OutputColumns(String output, List<String> names, List<Layout.Path> paths, StructType type) {
  /** Refuses columns of types that a format does not write; returns the columns. */
  public OutputColumns checked(Predicate<DataType> writes, String format) {
    for (Layout.Path path : paths)
      if (!writes.test(path.type()))
        throw refused("column '" + path.name() + "' is " + path.type().sql() + ", which has no form in " + format);
    return this;
  }

  /** Returns the way to the only column, which must be of a type; {@code wanted} is what messages call it. */
  public Layout.Path only(Class<? extends DataType> type, String format, String wanted) {
    if (paths.size() != 1) throw refused(format + " output needs exactly one column, got " + paths.size());
    Layout.Path path = paths.get(0);
    if (!type.isInstance(path.type()))
      throw refused("column '" + path.name() + "' is " + path.type().sql() + ", and " + format + " output needs " + wanted);
    return path;
  }

  /** Returns the one column of a name; all of them where the name is null or missing. */
  OutputColumns picked(JsonNode name) {
    return name.isTextual() ? ordered(List.of(name.asText())) : this;
  }

  /** Returns the columns in another order, of which some may be left out. */
  public OutputColumns ordered(List<String> order) {
    var ordered = new ArrayList<Layout.Path>();
    StructType types = new StructType();
    for (String name : order) {
      if (!names.contains(name)) throw refused("there is no column '" + name + "', only " + String.join(", ", names));
      ordered.add(paths.get(names.indexOf(name)));
      types = types.add(type.fields()[names.indexOf(name)]);
    }
    return new OutputColumns(output, order, ordered, types);
  }

  private PlanException refused(String why) {
    return new PlanException("BAD_OUTPUT", "cannot plan " + output + ": " + why);
  }
}
