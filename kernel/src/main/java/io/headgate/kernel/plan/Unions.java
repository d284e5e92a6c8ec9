package io.headgate.kernel.plan;

import com.fasterxml.jackson.databind.JsonNode;
import io.headgate.kernel.functions.Ordinals;
import io.headgate.kernel.rows.Header;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The unions of a flow. The way behind a union is compiled once, for rows in one segment whose columns may all be null: so rows
 * of every stream have the same form there, however they were made.
 */
final class Unions {
  /** What is behind a union, and the stream that it was first compiled for. */
  private record Target(StructType schema, String from, Route route) {}

  private final Map<String, JsonNode> unions = new HashMap<>();
  private final Map<String, Target> targets = new HashMap<>();

  Unions(JsonNode unions) {
    for (JsonNode union : unions) this.unions.put(union.get("id").asText(), union);
  }

  /** Returns the step from one stream into a union. */
  Route.Step step(JsonNode step, Layout layout, RouteCompiler routes) {
    JsonNode union = unions.get(step.get("id").asText());
    String name = union.get("name").asText();
    String from = step.get("from").asText();
    var columns = new ArrayList<String>();
    for (JsonNode column : union.get("columns")) columns.add(column.asText());
    StructType schema = picked(layout.schema(), columns);
    Target target = targets.get(name);
    if (target == null) {
      Route route = routes.compile(union.get("route"), Layout.of(schema), union.get("id").asText());
      target = new Target(schema, from, route);
      targets.put(name, target);
    }
    check(schema, from, target, name);
    boolean fits = layout.segments() == 1 && Arrays.asList(layout.schema().fieldNames()).equals(columns);
    RowProgram program = fits ? null : routes.picked(columns, layout, name);
    return new Enter(program, target.route, step.path("place").asInt(-1), name);
  }

  private static StructType picked(StructType schema, List<String> columns) {
    StructType out = new StructType();
    for (String column : columns) out = out.add(schema.apply(column));
    return out.asNullable();
  }

  /** Refuses types that only Spark knows, and that differ. */
  private static void check(StructType schema, String from, Target target, String name) {
    for (int i = 0; i < schema.length(); i++) {
      StructField mine = schema.fields()[i];
      StructField other = target.schema.fields()[i];
      if (!mine.dataType().sql().equals(other.dataType().sql()))
        throw new PlanException("BAD_UNION",
            "cannot plan " + name + ": column '" + mine.name() + "' of '" + from + "' is " + mine.dataType().sql() + ", and that of '"
                + target.from + "' is " + other.dataType().sql(),
            "cast it first: with_columns(" + mine.name() + "='CAST(" + mine.name() + " AS " + other.dataType().sql() + ")')");
    }
  }

  /** Hands rows of one stream on to what is behind the union. */
  private static final class Enter implements Route.Step {
    /** Null where rows fit as they are. */
    private final RowProgram columns;
    private final Route then;
    /** Tells rows of this stream from those of others that are of the same record; -1 where there are none. */
    private final int place;
    private final String name;
    private transient SegmentedRow result;

    Enter(RowProgram columns, Route then, int place, String name) {
      this.columns = columns;
      this.then = then;
      this.place = place;
      this.name = name;
    }

    @Override public void take(SegmentedRow row, Header header, Integer spread, Route.Out out) {
      if (place < 0) {
        then.send(fitted(row), header, spread, out);
        return;
      }
      long ordinal = header.ordinal;
      header.ordinal = Ordinals.of(ordinal, place, name);
      then.send(fitted(row), header, spread, out);
      header.ordinal = ordinal;
    }

    private SegmentedRow fitted(SegmentedRow row) {
      if (columns == null) return row;
      if (result == null) result = new SegmentedRow(Layout.of(columns.result()));
      result.set(columns.apply(row));
      return result;
    }
  }
}
