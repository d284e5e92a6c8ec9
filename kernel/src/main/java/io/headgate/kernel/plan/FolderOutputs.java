package io.headgate.kernel.plan;

import com.fasterxml.jackson.databind.JsonNode;
import io.headgate.kernel.formats.Formats;
import io.headgate.kernel.formats.Lines;
import io.headgate.kernel.formats.OutputColumns;
import io.headgate.kernel.formats.avro.AvroEncoder;
import io.headgate.kernel.formats.csv.CsvEncoder;
import io.headgate.kernel.json.RowEncoder;
import io.headgate.kernel.rolling.PartitionPath;
import io.headgate.kernel.rolling.Sheet;
import io.headgate.kernel.rows.Layout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSession;

/** The outputs of a flow that are folders of files: which columns are in the files, and which name their folders. */
final class FolderOutputs {
  private final SparkSession spark;
  private final Map<Integer, Sheet> sheets = new HashMap<>();

  FolderOutputs(SparkSession spark) {
    this.spark = spark;
  }

  /** Returns how the files of each output are made, by the address of the output. */
  Map<Integer, Sheet> sheets() {
    return sheets;
  }

  /**
   * Compiles an output.
   *
   * @param step has {@code folder}: {@code partition_by}, {@code compression}, {@code header}
   */
  Route.Step step(JsonNode step, Layout layout, OutputColumns all, Route.Failing failing) {
    JsonNode folder = step.get("folder");
    var names = new ArrayList<String>();
    for (JsonNode column : folder.get("partition_by")) names.add(column.asText());
    OutputColumns folders = folders(all, names);
    OutputColumns files = all.ordered(all.names().stream().filter(name -> !names.contains(name)).toList());
    if (files.names().isEmpty())
      throw new PlanException("BAD_OUTPUT",
          "cannot plan " + all.output() + ": all of its columns name folders, and none is left for the files",
          "partition by fewer columns");
    JsonNode format = step.get("format");
    String type = format.get("type").asText();
    String compression = folder.get("compression").asText();
    RowEncoder encoder = Sheet.isPacked(type) ? packed(files, layout) : Formats.encoder(format, files, Lines.NONE);
    String schema = Sheet.isPacked(type)
        // Files of one folder have the same columns whether or not SQL knows that one is never null.
        ? files.type().asNullable().json() : encoder instanceof AvroEncoder avro ? avro.schema() : null;
    String header = encoder instanceof CsvEncoder csv && folder.get("header").asBoolean() ? csv.header() : null;
    int address = step.get("address").asInt();
    sheets.put(address, new Sheet(type, compression, schema, header));
    PartitionPath path = names.isEmpty() ? null : new PartitionPath(names, folders.paths());
    return new Route.ToFolder(address, encoder, path, failing);
  }

  private static OutputColumns folders(OutputColumns all, List<String> names) {
    for (String name : names)
      if (!all.names().contains(name))
        throw new PlanException("UNKNOWN_COLUMN", "cannot plan " + all.output() + ": there is no column '" + name
            + "' to partition by, only " + String.join(", ", all.names()));
    OutputColumns folders = all.ordered(names);
    for (Layout.Path path : folders.paths())
      if (!PartitionPath.takes(path.type()))
        throw new PlanException("BAD_OUTPUT", "cannot plan " + all.output() + ": column '" + path.name() + "' is "
            + path.type().sql() + ", which folders cannot be named after",
            "partition by a string, integer, boolean, date, timestamp or decimal column");
    return folders;
  }

  private RowEncoder packed(OutputColumns files, Layout layout) {
    files.checked(PackedEncoder::writes, "files with columns");
    if (isWhole(files, layout)) return new PackedEncoder(null);
    var expressions = new ArrayList<String>();
    for (int i = 0; i < files.names().size(); i++)
      expressions.add(layout.text(files.paths().get(i)) + " AS " + PackedColumns.quote(files.names().get(i)));
    return new PackedEncoder(RowProgram.compile(spark, layout.schema(), expressions, files.names(), files.output()));
  }

  /** Returns whether files have the columns of a row's only segment, in their order. */
  private static boolean isWhole(OutputColumns files, Layout layout) {
    if (layout.segments() > 1 || files.names().size() != layout.base().length()) return false;
    for (int i = 0; i < files.names().size(); i++) {
      int[] ordinals = files.paths().get(i).ordinals();
      if (ordinals.length != 1 || ordinals[0] != i) return false;
    }
    return true;
  }
}
