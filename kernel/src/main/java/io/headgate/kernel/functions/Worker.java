package io.headgate.kernel.functions;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/**
 * A Python process that calls the functions of a flow, one batch of rows at a time; it lives across batches.
 *
 * <p>It ends when its socket closes, so none outlives this process. Messages are little more than lengths and Arrow record
 * batches; {@code headgate.functions.worker} reads and writes the other ends. One thread uses it at a time.
 */
public final class Worker implements AutoCloseable {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int BUFFER = 256 << 10;
  /** Messages up to this size share one array. */
  private static final int KEPT = 8 << 20;
  /** How a function asks for more in the middle of a call. */
  private static final int FETCH = 2;
  /** How an async function says that its calls go on. */
  private static final int ALIVE = 3;
  private static final long START_MILLIS = 60_000;
  private static final String SOCKET = "worker";
  /** In bytes; systems allow 104 or 108 with the one that ends it. */
  private static final int LONGEST_ADDRESS = 103;

  private final WorkerSettings settings;
  private final Process process;
  private final LastLines lines;
  private SocketChannel channel;
  private DataOutputStream out;
  private DataInputStream in;
  private boolean busy;
  /** Holds the body of the last message, unless that was a large one. */
  private byte[] bytes = new byte[BUFFER];
  /** When it was last used, by {@link System#nanoTime}. */
  private long usedAt;
  private volatile boolean timedOut;
  /** Ends the process if the present call takes too long. */
  private ScheduledFuture<?> watch;

  /**
   * The answer to one call.
   *
   * @param rows how many rows were returned
   * @param origins the row of the input that each returned row comes from; null if they are the same, in the same order
   * @param errors the rows of the input that failed, with the traceback of each
   * @param body has {@code length} bytes; valid until the next call
   */
  public record Reply(int rows, int[] origins, List<RowError> errors, byte[] body, int length) {}

  /** @param attempts how often an async function was called; 0 for the others */
  public record RowError(int row, String text, int attempts) {}

  /** Answers what a function asks for in the middle of a call. */
  public interface Fetches {
    /**
     * Returns the bytes of the answer.
     *
     * @param rows how many rows are asked for, and {@code of} the kind of these
     * @param body has {@code length} bytes, which are valid during the call
     */
    MessageBody fetch(int rows, int of, byte[] body, int length) throws IOException;
  }

  private Worker(WorkerSettings settings, Process process) {
    this.settings = settings;
    this.process = process;
    lines = new LastLines(process);
  }

  /** Starts a process and loads the functions. */
  static Worker start(WorkerSettings settings, List<? extends WorkerFunction> functions) {
    Path folder = null;
    Worker worker = null;
    try {
      folder = socketFolder();
      Path socket = folder.resolve(SOCKET);
      try (var server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
        server.bind(UnixDomainSocketAddress.of(socket));
        worker = new Worker(settings, spawn(settings, socket));
        worker.accept(server);
      }
      worker.load(functions);
      return worker;
    } catch (IOException e) {
      FunctionFailure failure = worker == null
          ? new FunctionFailure(FunctionFailure.DIED, "cannot start " + settings.python() + ": " + e.getMessage(), e)
          : worker.ended(functions.get(0).name(), e);
      if (worker != null) worker.close();
      throw failure;
    } catch (RuntimeException e) {
      if (worker != null) worker.close();
      throw e;
    } finally {
      if (folder != null) delete(folder);
    }
  }

  /** Returns a new folder for a socket: in the run's scratch folder, unless its path is too long for the address of one. */
  private static Path socketFolder() throws IOException {
    Path folder = Files.createTempDirectory(Path.of(System.getProperty("java.io.tmpdir")), "headgate-");
    if (folder.resolve(SOCKET).toString().getBytes(StandardCharsets.UTF_8).length <= LONGEST_ADDRESS) return folder;
    Files.delete(folder);
    return Files.createTempDirectory(Path.of("/tmp"), "headgate-");
  }

  private static void delete(Path folder) {
    try {
      Files.deleteIfExists(folder.resolve(SOCKET));
      Files.deleteIfExists(folder);
    } catch (IOException e) {
      // It is an empty folder, in most cases within the scratch folder of the run, which is removed with it.
    }
  }

  private static Process spawn(WorkerSettings settings, Path socket) throws IOException {
    var builder = new ProcessBuilder(SentFiles.path(settings.python()), "-m", "headgate.functions.worker", socket.toString());
    builder.redirectErrorStream(true);
    builder.redirectInput(ProcessBuilder.Redirect.from(new File("/dev/null")));
    var environment = builder.environment();
    // The same rows give the same results in every process.
    environment.put("PYTHONHASHSEED", "0");
    environment.put("PYTHONUTF8", "1");
    environment.put("PYTHONUNBUFFERED", "1");
    environment.put("TZ", "UTC");
    environment.put("LC_ALL", "C.UTF-8");
    if (settings.code() != null)
      environment.merge("PYTHONPATH", SentFiles.path(settings.code()), (own, sent) -> sent + File.pathSeparator + own);
    return builder.start();
  }

  /** Waits for the process to connect, or to end. */
  private void accept(ServerSocketChannel server) throws IOException {
    server.configureBlocking(false);
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(START_MILLIS);
    while ((channel = server.accept()) == null) {
      if (!process.isAlive()) throw new IOException("the process ended");
      if (System.nanoTime() > deadline) throw new IOException("the process did not connect");
      try {
        Thread.sleep(2);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new ClosedByInterruptException();
      }
    }
    out = new DataOutputStream(new BufferedOutputStream(Channels.newOutputStream(channel), BUFFER));
    in = new DataInputStream(new BufferedInputStream(Channels.newInputStream(channel), BUFFER));
  }

  /** Returns what a worker is told of functions. */
  static ArrayNode describe(List<? extends WorkerFunction> functions) {
    ArrayNode all = JSON.createArrayNode();
    for (WorkerFunction function : functions)
      function.describe(all.addObject().put("address", function.address()).put("name", function.name()));
    return all;
  }

  private void load(List<? extends WorkerFunction> functions) throws IOException {
    ObjectNode message = JSON.createObjectNode();
    message.put("memory", settings.memory());
    message.put("check", settings.check());
    message.put("version", settings.version());
    var path = message.putArray("path");
    for (String folder : settings.path()) path.add(SentFiles.path(folder));
    message.set("functions", describe(functions));
    byte[] bytes = JSON.writeValueAsBytes(message);
    watch = watch();
    try {
      out.writeInt(bytes.length);
      out.write(bytes);
      out.flush();
      reply(null);
    } finally {
      watch.cancel(false);
    }
  }

  /**
   * Calls a function with a batch of rows.
   *
   * @param fetches null for a function that asks for nothing
   */
  public Reply call(WorkerFunction function, int rows, MessageBody body, Fetches fetches) {
    busy = true;
    watch = watch();
    try {
      out.writeInt(function.address());
      out.writeInt(rows);
      send(body);
      Reply reply = reply(fetches);
      busy = false;
      return reply;
    } catch (ClosedByInterruptException e) {
      throw interrupted(e);
    } catch (IOException e) {
      if (Thread.currentThread().isInterrupted()) throw interrupted(e);
      throw ended(function.name(), e);
    } finally {
      watch.cancel(false);
    }
  }

  private static RuntimeException interrupted(IOException e) {
    Thread.currentThread().interrupt();
    return new java.io.UncheckedIOException(e);
  }

  private void send(MessageBody body) throws IOException {
    out.writeInt(body.size());
    out.write(body.array(), 0, body.size());
    out.flush();
  }

  private Reply reply(Fetches fetches) throws IOException {
    while (true) {
      int state = in.readInt();
      int rows = in.readInt();
      int count = in.readInt();
      int text = in.readInt();
      int length = in.readInt();
      if (state == ALIVE) {
        watch.cancel(false);
        watch = watch();
        continue;
      }
      if (state != FETCH) return reply(state != 0, rows, count, text, length);
      send(fetches.fetch(rows, count, read(length), length));
    }
  }

  private Reply reply(boolean failed, int rows, int count, int text, int length) throws IOException {
    int[] origins = count < 0 ? null : new int[count];
    for (int i = 0; i < count; i++) origins[i] = in.readInt();
    byte[] words = in.readNBytes(text);
    if (words.length < text) throw new java.io.EOFException();
    if (failed) {
      var failure = JSON.readTree(words);
      throw new FunctionFailure(failure.get("code").asText(), failure.get("message").asText());
    }
    return new Reply(rows, origins, text == 0 ? List.of() : errors(words), read(length), length);
  }

  /** Returns the next bytes of the process, in an array that may be longer. */
  private byte[] read(int length) throws IOException {
    if (length > bytes.length && length <= KEPT) bytes = new byte[Math.max(length, 2 * bytes.length)];
    byte[] into = length > KEPT ? new byte[length] : bytes;
    in.readFully(into, 0, length);
    return into;
  }

  private static List<RowError> errors(byte[] words) throws IOException {
    return List.of(JSON.readValue(words, RowError[].class));
  }

  private ScheduledFuture<?> watch() {
    return WorkerPool.TIMER.schedule(
        () -> {
          timedOut = true;
          // Process.destroyForcibly closes the output, too, and the last lines would be lost.
          process.toHandle().destroyForcibly();
        },
        settings.timeoutMillis(), TimeUnit.MILLISECONDS);
  }

  /** Returns the failure of a call whose process has ended, or is beyond use. */
  private FunctionFailure ended(String function, IOException cause) {
    String how = timedOut ? "it did not answer within " + settings.timeoutMillis() / 1000 + " s" : how(waitFor());
    return new FunctionFailure(
        FunctionFailure.DIED, "the worker of " + function + " ended: " + how + lines.told(), cause);
  }

  /** Returns the exit code of a process whose socket has closed. */
  private int waitFor() {
    try {
      if (!process.waitFor(5, TimeUnit.SECONDS)) process.toHandle().destroyForcibly();
      return process.waitFor(5, TimeUnit.SECONDS) ? process.exitValue() : -1;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return -1;
    }
  }

  private static String how(int exit) {
    if (exit > 128) return "killed by signal " + (exit - 128);
    return "exit code " + exit;
  }

  /** Returns whether it can serve another task. */
  boolean isReady() {
    return !busy && process.isAlive();
  }

  void used() {
    usedAt = System.nanoTime();
  }

  boolean isIdleFor(long nanos) {
    return System.nanoTime() - usedAt > nanos;
  }

  @Override public void close() {
    try {
      if (channel != null) channel.close();
    } catch (IOException e) {
      // It is gone all the same.
    }
    process.destroyForcibly();
  }
}
