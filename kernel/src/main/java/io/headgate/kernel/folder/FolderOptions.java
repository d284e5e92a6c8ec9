package io.headgate.kernel.folder;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.headgate.kernel.formats.csv.CsvShape;
import java.io.Serializable;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * How a folder is read.
 *
 * @param folder its path or address
 * @param topic its name in the flow
 * @param format json, csv, text, parquet, orc or avro
 * @param csv the form of lines of CSV
 * @param schema the declared columns; {@code partitions} those whose values are in the names of folders
 * @param header whether the first line of a CSV file names its columns
 * @param recursive whether files in subfolders are read
 * @param glob the pattern of file names; null for all
 * @param lookNanos the least time between two listings
 * @param minAgeMs how long a file must not have changed before it is numbered
 * @param start earliest, latest or a position
 * @param kept a folder with the ledger of the position to start from; null where the position comes with its checkpoint
 */
record FolderOptions(
    String folder, String topic, String format, CsvShape csv, StructType schema, List<String> partitions, boolean header, boolean recursive,
    String glob, long lookNanos, long minAgeMs, long maxBytes, long maxRecord, int splits, String start, String kept, String run,
    String source, boolean failOnLoss) implements Serializable {
  private static final Set<String> LINES = Set.of("json", "csv", "text");
  private static final List<String> COMPRESSED = List.of(".gz", ".gzip", ".zst", ".zstd", ".snappy", ".sz");

  static FolderOptions of(CaseInsensitiveStringMap options) {
    String columns = options.getOrDefault("partitions", "");
    JsonNode form = form(options.get("format"));
    return new FolderOptions(
        options.get("path"), options.get("topic"), form.path("type").asText(), CsvShape.of(form),
        (StructType) DataType.fromJson(options.get("schema")),
        columns.isEmpty() ? List.of() : List.of(columns.split(",")),
        options.getBoolean("header", true), options.getBoolean("recursive", true), options.get("glob"),
        options.getLong("look.ms", 2000) * 1_000_000L, options.getLong("min.age.ms", 0), options.getLong("max.bytes", 64L << 20),
        options.getLong("max.record", 1L << 20), options.getInt("splits", 1), options.getOrDefault("start", "earliest"),
        options.get("start.kept"), options.get("gate"), options.get("gate.source"),
        !"continue".equals(options.get("on.data.loss")));
  }

  private static JsonNode form(String json) {
    try {
      return new ObjectMapper().readTree(json);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("not a format: " + json, e);
    }
  }

  /** Returns whether the first line of each file names its columns. */
  boolean namesColumns() {
    return header && format.equals("csv");
  }

  Path root() {
    return folder.contains("://") ? new Path(folder) : new Path(java.nio.file.Path.of(folder).toUri());
  }

  Path path(NumberedFile file) {
    // Of a name that looks like an address, such as a:b, a plain constructor would make one.
    Path root = root();
    String base = root.toUri().getPath();
    return new Path(root.toUri().getScheme(), root.toUri().getAuthority(), (base.endsWith("/") ? base : base + "/") + file.path());
  }

  /** Returns whether files consist of lines; the others have rows of their own. */
  boolean isLines() {
    return LINES.contains(format);
  }

  /** Returns whether a file can be read from a byte in its middle. */
  boolean isSplittable(String path) {
    return !isLines() || !isCompressed(path);
  }

  static boolean isCompressed(String path) {
    String name = path.toLowerCase(Locale.ROOT);
    return COMPRESSED.stream().anyMatch(name::endsWith);
  }
}
