package io.headgate.kernel.folder;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Finds nulls where the declared columns have none. */
final class NullChecks implements Serializable {
  /** Looks at one value; returns the path of a null below it, or null. */
  private interface Check extends Serializable {
    String find(SpecializedGetters from, int at);
  }

  private final Check[] checks;

  NullChecks(StructType schema) {
    checks = fields(schema, "").toArray(Check[]::new);
  }

  /** Returns the name of a column that is null and must not be; null if there is none. */
  String find(SpecializedGetters row) {
    for (Check each : checks) {
      String name = each.find(row, 0);
      if (name != null) return name;
    }
    return null;
  }

  private static List<Check> fields(StructType schema, String prefix) {
    var out = new ArrayList<Check>();
    for (int i = 0; i < schema.length(); i++) {
      StructField field = schema.fields()[i];
      int place = i;
      Check inner = of(field.dataType(), field.nullable(), prefix + field.name());
      if (inner != null) out.add((row, ignored) -> inner.find(row, place));
    }
    return out;
  }

  /** Returns the check of a value of a type; null if none is needed. */
  private static Check of(DataType type, boolean nullable, String name) {
    Check below = below(type, name);
    if (nullable && below == null) return null;
    return (from, at) -> {
      if (from.isNullAt(at)) return nullable ? null : name;
      return below == null ? null : below.find(from, at);
    };
  }

  private static Check below(DataType type, String name) {
    if (type instanceof StructType struct) {
      List<Check> inner = fields(struct, name + ".");
      if (inner.isEmpty()) return null;
      return (from, at) -> {
        SpecializedGetters row = from.getStruct(at, struct.length());
        for (Check each : inner) {
          String found = each.find(row, 0);
          if (found != null) return found;
        }
        return null;
      };
    }
    if (type instanceof ArrayType array) {
      Check element = of(array.elementType(), array.containsNull(), name + "[]");
      return element == null ? null : (from, at) -> each(element, from.getArray(at));
    }
    if (type instanceof MapType map) {
      Check value = of(map.valueType(), map.valueContainsNull(), name + "{}");
      return value == null ? null : (from, at) -> {
        MapData entries = from.getMap(at);
        return each(value, entries.valueArray());
      };
    }
    return null;
  }

  private static String each(Check check, ArrayData elements) {
    for (int i = 0; i < elements.numElements(); i++) {
      String found = check.find(elements, i);
      if (found != null) return found;
    }
    return null;
  }
}
