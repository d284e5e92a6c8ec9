package io.headgate.kernel.functions;

/** The places of rows that are made of one record: three functions behind each other may multiply rows. */
public final class Ordinals {
  private static final int BITS = 20;
  private static final long MOST = 1L << (63 - BITS);

  private Ordinals() {}

  /**
   * Returns the ordinal of a row.
   *
   * @param base the ordinal of the row that it is made of
   * @param place its place among those that the function made of that row
   * @param name how messages name the function
   */
  public static long of(long base, int place, String name) {
    return of(base, place, 1 << BITS, name);
  }

  /**
   * Returns the ordinal of a row of an operator with two sides that one record may be on: rows of its left side are first.
   *
   * @param side 0 for left, 1 for right
   */
  public static long ofSide(long base, int side, int place, String name) {
    int most = 1 << BITS - 1;
    return of(base, place, most, name) + (long) side * most;
  }

  private static long of(long base, int place, int most, String name) {
    if (place >= most || base >= MOST)
      throw new FunctionFailure(FunctionFailure.BAD_RESULT, name + " made more than " + most + " rows of one record");
    return (base << BITS) + place;
  }
}
