package io.headgate.kernel.kafka;

import java.io.Serializable;

/** How the tasks of one lineage are known to a cluster: by transactional ids, which are also the groups of their marks. */
record Lineage(String job, String name) implements Serializable {
  /** Returns the group that tells which query may write. */
  String group() {
    return "headgate." + job + "." + name;
  }

  /** @param slot 0, or more where several clients of one query reach the same cluster */
  String id(int task, int slot) {
    return group() + "." + task + (slot == 0 ? "" : "-" + slot);
  }

  /** Returns whether an id is that of a task of this lineage. */
  boolean has(String id) {
    return id.startsWith(group() + ".") && id.substring(group().length() + 1).matches("\\d+(-\\d+)?");
  }

  static int slot(String id) {
    int dash = id.lastIndexOf('-');
    return dash < id.lastIndexOf('.') ? 0 : Integer.parseInt(id.substring(dash + 1));
  }
}
