package io.headgate.kernel.process;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Every schema that the state of a process function has had: a struct of {@code record} and {@code pages}, the last of which
 * has a struct column for each list and map.
 *
 * <p>The keys of pages in state have the number of their list or map: its place among all that the history names, in order of
 * their first appearance. So a list that a later version declares before another changes no number.
 */
public final class StateSchemas implements Serializable {
  private final StateUpgrade record;
  private final List<StateUpgrade> pages = new ArrayList<>();
  private final List<Integer> numbers = new ArrayList<>();

  /** @param history the last one is the present one */
  public StateSchemas(List<StructType> history) {
    record = new StateUpgrade(history.stream().map(each -> struct(each, "record")).toList());
    var named = new ArrayList<String>();
    for (StructType each : history)
      for (String name : struct(each, "pages").fieldNames()) if (!named.contains(name)) named.add(name);
    for (StructField field : struct(history.get(history.size() - 1), "pages").fields()) {
      var versions = new ArrayList<StructType>();
      for (StructType each : history) versions.add(struct(struct(each, "pages"), field.name()));
      pages.add(new StateUpgrade(versions));
      numbers.add(named.indexOf(field.name()));
    }
  }

  /** Returns a struct column's type; null if there is no such column. */
  private static StructType struct(StructType of, String name) {
    for (StructField field : of.fields()) if (field.name().equals(name)) return (StructType) field.dataType();
    return null;
  }

  /** Returns how records are read. */
  public StateUpgrade record() {
    return record;
  }

  /** Returns how many lists and maps there are at present. */
  public int vars() {
    return pages.size();
  }

  /** Returns how pages of a list or map are read, by its place in the present declaration. */
  public StateUpgrade page(int var) {
    return pages.get(var);
  }

  /** Returns the number that a list or map has in the keys of its pages. */
  public int number(int var) {
    return numbers.get(var);
  }

  /** Returns the place in the present declaration of a list or map with a number; -1 if it is no longer declared. */
  public int find(int number) {
    return IntStream.range(0, vars()).filter(var -> number(var) == number).findFirst().orElse(-1);
  }
}
