package io.headgate.kernel.cluster;

import io.headgate.kernel.Listing;
import java.io.IOException;
import java.io.Serializable;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaFutureAction;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.SparkSession;

/** Looks whether executors have the folders of the driver, which they read and write by their paths. */
public final class SharedFolders {
  private static final long PATIENCE_SECONDS = 60;
  /** A network file system may take a moment to show a new file. */
  private static final int LOOKS = 10;
  private static final long LOOK_MS = 200;

  private SharedFolders() {}

  /** What an executor found of a folder. */
  private record Finding(String executor, String host, String folder, String problem) implements Serializable {}

  /**
   * Returns what is wrong with folders on executors: executor, host, folder and problem of each, as JSON.
   *
   * @param folders paths, each of which has a file named {@code marker}
   * @param tasks how many tasks look; there is no way to name the executors that run them
   */
  public static String problems(SparkSession spark, List<String> folders, String marker, int tasks) {
    // Of Py4J's own kind, which no executor knows.
    var paths = new ArrayList<>(folders);
    List<Integer> numbers = IntStream.range(0, tasks).boxed().collect(Collectors.toList());
    JavaFutureAction<List<Finding>> looking = JavaSparkContext.fromSparkContext(spark.sparkContext())
        .parallelize(numbers, tasks).flatMap(number -> look(paths, marker).iterator()).collectAsync();
    try {
      var found = new LinkedHashMap<String, String[]>();
      for (Finding each : looking.get(PATIENCE_SECONDS, TimeUnit.SECONDS))
        found.putIfAbsent(each.executor + each.folder, new String[] {each.executor, each.host, each.folder, each.problem});
      return Listing.of(new ArrayList<>(found.values()));
    } catch (TimeoutException | InterruptedException | ExecutionException e) {
      // Not all executors could look. What keeps them from it keeps them from the query's tasks, too, which tell of it.
      looking.cancel(true);
      if (e instanceof InterruptedException) Thread.currentThread().interrupt();
      return Listing.of(List.of());
    }
  }

  private static List<Finding> look(List<String> folders, String marker) throws IOException, InterruptedException {
    var out = new ArrayList<Finding>();
    for (String folder : folders) {
      String problem = problem(Path.of(folder), marker);
      if (problem != null)
        out.add(new Finding(SparkEnv.get().executorId(), InetAddress.getLocalHost().getHostName(), folder, problem));
    }
    return out;
  }

  private static String problem(Path folder, String marker) throws InterruptedException {
    for (int look = 0; !Files.exists(folder.resolve(marker)); look++) {
      if (look == LOOKS) return Files.isDirectory(folder) ? "has another folder of that name" : "does not have it";
      Thread.sleep(LOOK_MS);
    }
    try {
      Files.delete(Files.createTempFile(folder, marker, ".tmp"));
      return null;
    } catch (IOException e) {
      return "cannot write to it (" + e.getClass().getSimpleName() + ")";
    }
  }
}
