package io.headgate.kernel.checkpoint;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.headgate.kernel.CodedFailure;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.OptionalLong;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;

/**
 * The right of one driver to write a checkpoint on an object store: claims with rising numbers, each created if it is absent.
 *
 * <p>The lock of the job's supervisor has claims of the same form ({@code store_lock.py}); a supervisor that takes a job over creates
 * the next claim here, as a released one.
 *
 * <p>The driver that created the newest claim holds the lease. It renews it by the next claim; another driver takes it over by
 * the next claim, once the newest one is older than the period. So a driver that was held up finds its next number taken. Ages
 * are differences of the store's own times, and the holder measures its period with its own monotonic clock: the clocks of
 * hosts are never compared.
 *
 * <p>The lease keeps a second driver away, and ends one that was replaced. It is not the fence: between a look at it and a write
 * any time can pass. The fence is that the store creates each log of the checkpoint only once, and those of the sinks.
 */
public final class Lease {
  private static final int FORMAT = 1;
  private static final ObjectMapper JSON = new ObjectMapper();
  /** Times of a store have whole seconds, and its hosts may differ a little. */
  private static final long MARGIN_MS = 2_000;
  private static final int RENEWALS_A_PERIOD = 3;
  private static final long RETRY_MS = 1_000;
  /** By the root of the checkpoint. */
  private static final Map<String, Lease> HELD = new ConcurrentHashMap<>();

  private final StoreFiles files;
  private final Path folder;
  private final String checkpoint;
  private final String holder;
  /** This lease, of all that a holder has had. */
  private final String driver = UUID.randomUUID().toString();
  private final long periodNanos;
  private long number;
  /** When the newest claim was sent. */
  private long claimedAt;
  private String lost;
  private boolean ended;

  private Lease(StoreFiles files, Path folder, String checkpoint, String holder, long periodMillis) {
    this.files = files;
    this.folder = folder;
    this.checkpoint = checkpoint;
    this.holder = holder;
    periodNanos = periodMillis * 1_000_000L;
  }

  /**
   * Takes the lease of a checkpoint, and renews it until it is released.
   *
   * @param folder the place of its claims
   * @param checkpoint the checkpoint's address; nothing below it is written once the lease is lost
   * @param holder the same for drivers of which only one can be alive; a dead one's claim is not waited for
   */
  public static Lease take(SparkSession spark, String folder, String checkpoint, String holder, long periodMillis)
      throws IOException {
    var place = new Path(folder);
    StoreFiles files = StoreFiles.find(place, spark.sparkContext().hadoopConfiguration());
    if (files == null) throw new IOException("cannot take the lease in " + folder + ": the store cannot create a file if it is absent");
    var lease = new Lease(files, place, checkpoint, holder, periodMillis);
    lease.take();
    HELD.put(checkpoint, lease);
    var renewing = new Thread(lease::renewAlways, "headgate-lease");
    renewing.setDaemon(true);
    renewing.start();
    return lease;
  }

  /** Refuses a write below a checkpoint whose lease this driver has lost; renews one that is about to expire. */
  static void check(Path path) throws IOException {
    if (HELD.isEmpty()) return;
    String name = path.toString();
    for (Lease lease : HELD.values()) if (name.startsWith(lease.checkpoint + "/")) lease.check();
  }

  /** Ends the lease, so that the next driver need not wait; nothing happens if it was lost. */
  public synchronized void release() {
    if (ended) return;
    ended = true;
    notifyAll();
    HELD.remove(checkpoint, this);
    if (lost != null) return;
    try {
      files.create(claim(number + 1), content(true));
    } catch (IOException e) {
      // It expires by itself.
    }
  }

  private synchronized void take() throws IOException {
    OptionalLong newest = newest();
    if (newest.isPresent()) {
      Claim claim = read(newest.getAsLong());
      if (claim != null && !claim.released && !claim.holder.equals(holder)) refuseIfAlive(claim);
    }
    number = newest.orElse(0);
    if (!claimNext()) throw held("another driver has just taken it");
  }

  private void refuseIfAlive(Claim claim) throws IOException {
    long age = storeTime() - claim.storedAt;
    long left = Math.max(periodNanos / 1_000_000L, claim.periodMillis) + MARGIN_MS - age;
    if (left <= 0) return;
    throw held("process " + claim.process + " on " + claim.host + " has renewed it " + Math.max(age, 0) / 1_000
        + " s ago, and it expires in " + (left + 999) / 1_000 + " s");
  }

  private CodedFailure held(String why) {
    return new CodedFailure(CodedFailure.LEASE_HELD, "cannot write the checkpoint " + checkpoint
        + ": another driver holds its lease in " + folder + ": " + why);
  }

  /** Creates the next claim; returns false if another driver has a newer one. */
  private boolean claimNext() throws IOException {
    long at = System.nanoTime();
    // An earlier try may have created it, and failed afterwards.
    boolean created = files.create(claim(number + 1), content(false)) || isMine(read(number + 1));
    // A number far back may be free again: its claim was old and is gone.
    OptionalLong newest = newest();
    if (!created || newest.isEmpty() || newest.getAsLong() != number + 1) return false;
    number++;
    claimedAt = at;
    removeBefore(number - 1);
    return true;
  }

  private void renewAlways() {
    while (true) {
      synchronized (this) {
        try {
          wait(Math.max(1, periodNanos / 1_000_000L / RENEWALS_A_PERIOD));
          while (!ended && lost == null && !tryRenew()) wait(RETRY_MS);
        } catch (InterruptedException e) {
          return;
        }
        if (ended || lost != null) return;
      }
    }
  }

  private boolean tryRenew() {
    try {
      renew();
      return true;
    } catch (IOException | RuntimeException e) {
      // The store does not answer. The next write looks whether the lease is still held.
      return false;
    }
  }

  private void renew() throws IOException {
    if (claimNext()) return;
    OptionalLong newest = newest();
    Claim claim = newest.isEmpty() ? null : read(newest.getAsLong());
    lost = claim == null ? "its claims are gone" : "process " + claim.process + " on " + claim.host + " has taken it over";
  }

  private synchronized void check() throws IOException {
    if (lost == null && System.nanoTime() - claimedAt >= periodNanos) renew();
    if (lost != null)
      throw new CodedFailure(CodedFailure.LEASE_LOST, "cannot write the checkpoint " + checkpoint + ": this driver has lost the lease in "
          + folder + ": " + lost);
  }

  private boolean isMine(Claim claim) {
    return claim != null && claim.driver.equals(driver);
  }

  /**
   * @param periodMillis how long its holder takes it to be valid; 0 if it does not say
   * @param storedAt the store's time of the claim, in epoch milliseconds
   */
  private record Claim(String holder, String driver, String host, long process, boolean released, long periodMillis, long storedAt) {}

  private Path claim(long number) {
    return new Path(folder, Long.toString(number));
  }

  private FileStatus[] claims() {
    return files.list(folder, path -> path.getName().matches("\\d+"));
  }

  private OptionalLong newest() {
    return Arrays.stream(claims()).mapToLong(file -> Long.parseLong(file.getPath().getName())).max();
  }

  private void removeBefore(long first) {
    for (FileStatus file : claims()) if (Long.parseLong(file.getPath().getName()) < first) files.delete(file.getPath());
  }

  /** Returns a claim; null if it is gone. */
  private Claim read(long number) throws IOException {
    for (FileStatus file : claims()) {
      if (!file.getPath().equals(claim(number))) continue;
      JsonNode claim = JSON.readTree(files.read(file.getPath()));
      if (claim.path("format").asInt() != FORMAT)
        throw held("the format of its claims is " + claim.path("format") + ", not " + FORMAT);
      return new Claim(claim.path("holder").asText(), claim.path("driver").asText(), claim.path("host").asText(), claim.path("process").asLong(),
          claim.path("released").asBoolean(), claim.path("period_ms").asLong(), file.getModificationTime());
    }
    return null;
  }

  private byte[] content(boolean released) throws IOException {
    String host;
    try {
      host = InetAddress.getLocalHost().getHostName();
    } catch (IOException e) {
      host = "an unknown host";
    }
    var claim = JSON.createObjectNode().put("format", FORMAT).put("holder", holder).put("driver", driver).put("host", host)
        .put("process", ProcessHandle.current().pid()).put("released", released).put("period_ms", periodNanos / 1_000_000L);
    return JSON.writeValueAsBytes(claim);
  }

  /** Returns the store's time, by a file of its own. */
  private long storeTime() throws IOException {
    var file = new Path(folder, "now-" + UUID.randomUUID());
    files.create(file, "now".getBytes(StandardCharsets.UTF_8));
    try {
      return files.modifiedAt(file);
    } finally {
      files.delete(file);
    }
  }
}
