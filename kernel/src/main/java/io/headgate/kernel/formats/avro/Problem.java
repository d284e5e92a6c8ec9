package io.headgate.kernel.formats.avro;

/**
 * Why records of a writer's schema do not fit the columns.
 *
 * @param field the column, with the fields below it
 * @param text what is written and what is needed
 * @param hint what fits
 * @param isOfBranch whether only the records fail that have this branch of a union
 */
public record Problem(String field, String text, String hint, boolean isOfBranch) {
  @Override public String toString() {
    return "field '" + field + "' " + text;
  }
}
