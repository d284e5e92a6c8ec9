package io.headgate.kernel.rows;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The shape of a stream's rows: the columns of a first packed segment, then one column per attached segment.
 *
 * @param base the columns that lie together in segment 0
 * @param attached one struct column per further segment, in order
 */
public record Layout(StructType base, List<StructField> attached) implements Serializable {
  public Layout {
    attached = List.copyOf(attached);
  }

  public static Layout of(StructType base) {
    return new Layout(base, List.of());
  }

  public Layout attach(String name, StructType type) {
    var more = new ArrayList<>(attached);
    more.add(new StructField(name, type, false, org.apache.spark.sql.types.Metadata.empty()));
    return new Layout(base, more);
  }

  public int segments() {
    return 1 + attached.size();
  }

  /** Returns how many columns segment i has. */
  public int width(int segment) {
    return segment == 0 ? base.length() : ((StructType) attached.get(segment - 1).dataType()).length();
  }

  /** Returns the rows' schema as SQL sees it. */
  public StructType schema() {
    StructType all = base;
    for (var field : attached) all = all.add(field);
    return all;
  }

  /**
   * A way to a value: the segment, then the ordinals from struct to struct (none: the segment itself), with the width of
   * each struct that is entered.
   */
  public record Path(String name, int segment, int[] ordinals, int[] widths, DataType type) implements Serializable {
    /** Returns the ordinal of the value in the struct that holds it. */
    public int last() {
      return ordinals[ordinals.length - 1];
    }
  }

  /** Returns the way to a column, and from there to fields of nested structs; null if there is none. */
  public Path find(String... parts) {
    int segment = 0;
    DataType type = null;
    var ordinals = new ArrayList<Integer>();
    var widths = new ArrayList<Integer>();
    int next = 1;
    for (int i = 0; i < attached.size(); i++) {
      if (attached.get(i).name().equals(parts[0])) {
        segment = i + 1;
        type = attached.get(i).dataType();
      }
    }
    if (segment == 0) {
      type = base;
      next = 0;
    }
    for (; next < parts.length; next++) {
      if (!(type instanceof StructType struct) || indexOf(struct, parts[next]) < 0) return null;
      ordinals.add(indexOf(struct, parts[next]));
      type = struct.fields()[indexOf(struct, parts[next])].dataType();
      widths.add(type instanceof StructType nested ? nested.length() : 0);
    }
    return new Path(parts[parts.length - 1], segment, ints(ordinals), ints(widths), type);
  }

  /** Returns a path as SQL over {@link #schema} has it. */
  public String text(Path path) {
    var names = new ArrayList<String>();
    DataType type = path.segment() == 0 ? base : attached.get(path.segment() - 1).dataType();
    if (path.segment() > 0) names.add(attached.get(path.segment() - 1).name());
    for (int ordinal : path.ordinals()) {
      StructField field = ((StructType) type).fields()[ordinal];
      names.add(field.name());
      type = field.dataType();
    }
    return names.stream().map(name -> "`" + name.replace("`", "``") + "`").collect(Collectors.joining("."));
  }

  private static int[] ints(List<Integer> values) {
    return values.stream().mapToInt(i -> i).toArray();
  }

  private static int indexOf(StructType struct, String name) {
    for (int i = 0; i < struct.length(); i++) if (struct.fields()[i].name().equals(name)) return i;
    return -1;
  }
}
