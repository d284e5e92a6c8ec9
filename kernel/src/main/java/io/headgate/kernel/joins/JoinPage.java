package io.headgate.kernel.joins;

import java.util.List;

/** Rows of one side that a key's record has no room for; the record says so much of each page. */
final class JoinPage {
  /** The first unmatched time of a page whose rows are all matched. */
  static final long NONE = Long.MAX_VALUE;

  final long number;
  final int side;
  /** The least and the greatest time of its rows. */
  long first;
  long last;
  /** The least time of its rows without a match, or {@link #NONE}. */
  long unmatched;
  /** Null until it is needed. */
  List<JoinRow> rows;
  /** Whether its rows differ from what state has. */
  boolean changed;

  JoinPage(long number, int side) {
    this.number = number;
    this.side = side;
  }

  /** Finds anew what the record says of it. */
  void measure() {
    first = Long.MAX_VALUE;
    last = Long.MIN_VALUE;
    unmatched = NONE;
    for (JoinRow row : rows) {
      first = Math.min(first, row.time);
      last = Math.max(last, row.time);
      if (!row.matched) unmatched = Math.min(unmatched, row.time);
    }
  }
}
