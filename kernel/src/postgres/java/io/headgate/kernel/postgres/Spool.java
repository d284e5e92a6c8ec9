package io.headgate.kernel.postgres;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;

/**
 * The refreshes of one table, in the source's own folder of the checkpoint: whatever goes on from a checkpoint has them, too.
 *
 * <pre>
 *  table-N.refresh            what the files of refresh N are, written last: without it they count for nothing
 *  table-N-TOKEN-P.rows       page P of the whole table, by key
 *  table-N-TOKEN-P.changes    page P of what is different from the refresh before
 * </pre>
 *
 * <p>The token is that of the attempt: two drivers that are at one refresh write different files, and the first one counts.
 */
final class Spool {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int FORMAT = 1;
  private static final String END = ".refresh";

  /** @param rows how many changes it has; {@code bytes} their size */
  record Page(long rows, long bytes) {}

  /**
   * One refresh.
   *
   * @param first how many changes are before it; {@code at} when it was read, in epoch milliseconds
   * @param contents how many pages have the whole table; {@code changes} the pages of what is different
   */
  record Refresh(long number, String token, long first, long at, int contents, List<Page> changes) {
    long end() {
      return first + changes.stream().mapToLong(Page::rows).sum();
    }
  }

  private final Path folder;
  private final CheckpointFileManager files;
  private final TreeMap<Long, Refresh> refreshes = new TreeMap<>();

  Spool(String folder, Configuration conf) {
    this.folder = new Path(folder);
    files = CheckpointFileManager.create(this.folder, conf);
    try {
      files.mkdirs(this.folder);
      for (FileStatus file : files.list(this.folder)) {
        String name = file.getPath().getName();
        if (name.startsWith("table-") && name.endsWith(END)) {
          Refresh found = parse(SpoolPage.read(files, file.getPath()));
          refreshes.put(found.number, found);
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException("cannot read the refreshes of a table in " + folder, e);
    }
  }

  private static Refresh parse(byte[] content) throws IOException {
    JsonNode n = JSON.readTree(content);
    if (n.path("format").asInt() != FORMAT)
      throw new IOException("a refresh has format " + n.path("format") + ", and this release reads " + FORMAT);
    var changes = new ArrayList<Page>();
    for (JsonNode page : n.get("changes")) changes.add(new Page(page.get(0).asLong(), page.get(1).asLong()));
    return new Refresh(n.get("refresh").asLong(), n.get("token").asText(), n.get("first").asLong(), n.get("at").asLong(),
        n.get("contents").asInt(), changes);
  }

  CheckpointFileManager files() {
    return files;
  }

  /** Returns the newest refresh; null before the first one. */
  synchronized Refresh newest() {
    return refreshes.isEmpty() ? null : refreshes.lastEntry().getValue();
  }

  synchronized List<Refresh> all() {
    return new ArrayList<>(refreshes.values());
  }

  Path rows(long refresh, String token, int page) {
    return new Path(folder, name(refresh) + "-" + token + "-" + page + ".rows");
  }

  Path changes(long refresh, String token, int page) {
    return new Path(folder, name(refresh) + "-" + token + "-" + page + ".changes");
  }

  private static String name(long refresh) {
    return String.format(Locale.ROOT, "table-%010d", refresh);
  }

  /** Makes a refresh count, unless another driver was first; returns the one that counts. */
  Refresh add(Refresh refresh) throws IOException {
    ObjectNode n = JSON.createObjectNode();
    n.put("format", FORMAT).put("refresh", refresh.number).put("token", refresh.token).put("first", refresh.first)
        .put("at", refresh.at).put("contents", refresh.contents);
    ArrayNode pages = n.putArray("changes");
    for (Page page : refresh.changes) pages.addArray().add(page.rows).add(page.bytes);
    var content = new ByteArrayOutputStream();
    content.write(n.toString().getBytes(StandardCharsets.UTF_8));
    Path file = new Path(folder, name(refresh.number) + END);
    try {
      SpoolPage.write(files, file, content, false);
    } catch (FileAlreadyExistsException e) {
      // The other driver's is read below.
    }
    Refresh there = parse(SpoolPage.read(files, file));
    synchronized (this) {
      refreshes.put(there.number, there);
    }
    return there;
  }

  /**
   * Deletes what no later batch needs: whole tables before the last but one, and changes that were taken long ago.
   *
   * @param taken how many changes every checkpoint has taken that may still be linked
   */
  synchronized void clean(long taken) {
    long newest = refreshes.isEmpty() ? 0 : refreshes.lastKey();
    List<Refresh> old = refreshes.values().stream().filter(r -> r.number < newest - 1 && r.end() <= taken).toList();
    if (old.isEmpty()) return;
    for (Refresh each : old) {
      // First what makes it count: a crash in between leaves files that nobody asks for, and the next refresh removes.
      files.delete(new Path(folder, name(each.number) + END));
      refreshes.remove(each.number);
    }
    deleteStrays();
  }

  /** Deletes pages that belong to no refresh: of those that were removed, and of attempts that were killed. */
  synchronized void deleteStrays() {
    for (FileStatus file : files.list(folder)) {
      String name = file.getPath().getName();
      if (!name.startsWith("table-") || name.endsWith(END) || name.endsWith(".crc")) continue;
      boolean known = refreshes.values().stream().anyMatch(r -> name.startsWith(name(r.number) + "-" + r.token + "-"));
      if (!known) files.delete(file.getPath());
    }
  }
}
