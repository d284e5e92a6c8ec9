package io.headgate.kernel.folder;

import io.headgate.kernel.formats.csv.CsvShape;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import io.headgate.kernel.json.Utf8;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** The names of columns on the first line of a CSV file. */
final class CsvColumns {
  private CsvColumns() {}

  static List<String> parse(byte[] line, CsvShape shape) throws BadRecord {
    Utf8.check(line, 0, line.length);
    String text = new String(line, StandardCharsets.UTF_8);
    var out = new ArrayList<String>();
    var name = new StringBuilder();
    boolean quoted = false;
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      boolean twice = quoted && c == shape.quote() && i + 1 < text.length() && text.charAt(i + 1) == shape.quote();
      if (c == shape.delimiter() && !quoted) {
        out.add(name.toString());
        name.setLength(0);
      } else if (c != shape.quote() || twice) {
        name.append(c);
        if (twice) i++;
      } else {
        quoted = !quoted;
      }
    }
    if (quoted) throw new BadRecord(Reason.BAD_FILE, "its first line, which names the columns, has a quote without its end");
    out.add(name.toString());
    return out;
  }

  /** Refuses a file whose columns cannot be those of the schema. */
  static void check(List<String> names, StructType declared) throws BadRecord {
    var seen = new HashSet<String>();
    for (String name : names)
      if (!seen.add(name)) throw new BadRecord(Reason.BAD_FILE, "its first line names column '" + name + "' twice");
    var absent = new StructType();
    for (StructField field : declared.fields()) if (!seen.contains(field.name())) absent = absent.add(field);
    Absent.defaults(absent);
  }
}
