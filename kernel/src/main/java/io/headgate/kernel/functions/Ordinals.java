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
    if (place >= 1 << BITS || base >= MOST)
      throw new FunctionFailure(FunctionFailure.BAD_RESULT, name + " made more than " + (1 << BITS) + " rows of one record");
    return (base << BITS) + place;
  }
}
