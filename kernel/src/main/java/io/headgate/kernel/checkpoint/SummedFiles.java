package io.headgate.kernel.checkpoint;

import io.headgate.kernel.CodedFailure;
import io.headgate.kernel.testing.CrashPoint;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;
import java.util.zip.CRC32C;
import java.util.zip.CheckedOutputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathFilter;
import org.apache.hadoop.fs.UnsupportedFileSystemException;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream;
import org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;

/**
 * Spark's checkpoint files, with a checksum beside each file of {@code offsets} and {@code commits}, beside {@code metadata}
 * and beside what gates keep in {@code sources}: {@code NAME.crc}, in the form that Spark gives the files of state stores.
 *
 * <p>Spark's own {@code ChecksumCheckpointFileManager} serves state stores only, and publishes a file and its checksum at the
 * same time: a crash between the two leaves a log without a checksum, or a checksum that the next attempt cannot replace.
 * Here the checksum comes first, and may replace one that a crash left. So a file that is there always has its checksum, and
 * one without was damaged, or written by release 0.7. Nothing but Hadoop's file systems is used. On an object store, the store
 * creates both if they are absent ({@link StoreFiles}).
 *
 * <p>Named by {@code spark.sql.streaming.checkpointFileManagerClass}; the interface is internal to Spark, seen in 4.3.0.
 */
public final class SummedFiles implements CheckpointFileManager {
  private static final String SUFFIX = ".crc";
  private static final Pattern NUMBER = Pattern.compile("\\d+");
  private static final Pattern VALUE = Pattern.compile("\"value\":(-?\\d+),\"mainFileSize\":(\\d+)");

  private final CheckpointFileManager files;

  /** Called by Spark, by reflection. */
  public SummedFiles(Path path, Configuration conf) throws IOException {
    CheckpointFileManager store = StoreFiles.find(path, conf);
    files = store == null ? ofFolder(path, conf) : store;
  }

  private static CheckpointFileManager ofFolder(Path path, Configuration conf) throws IOException {
    try {
      return ofContext(path, conf);
    } catch (UnsupportedFileSystemException e) {
      // As Spark itself does where nobody names a class.
      return new FileSystemBasedCheckpointFileManager(path, conf);
    }
  }

  /** Says what Scala does not: which exceptions come. */
  private static CheckpointFileManager ofContext(Path path, Configuration conf) throws IOException {
    return new FileContextBasedCheckpointFileManager(path, conf);
  }

  /** Returns whether a file has a checksum of ours; Spark sums what state stores write. */
  private static boolean isSummed(Path path) {
    String name = path.getName();
    String folder = path.getParent() == null ? "" : path.getParent().getName();
    return switch (folder) {
      case "offsets", "commits" -> NUMBER.matcher(name).matches();
      case "_metadata" -> false;
      default -> name.equals("metadata") || name.endsWith(".json");
    };
  }

  private static Path sums(Path path) {
    return path.suffix(SUFFIX);
  }

  private static boolean isSums(Path path) {
    String name = path.getName();
    return name.endsWith(SUFFIX) && path.getParent() != null
        && isSummed(new Path(path.getParent(), name.substring(0, name.length() - SUFFIX.length())));
  }

  @Override public CancellableFSDataOutputStream createAtomic(Path path, boolean overwrite) {
    checkLease(path);
    if (!isSummed(path)) return files.createAtomic(path, overwrite);
    // A file that is replaced would lie beside the checksum of another content after a crash: it goes without.
    if (overwrite) files.delete(sums(path));
    CancellableFSDataOutputStream out = files.createAtomic(path, overwrite);
    return overwrite ? out : new Summed(path, out);
  }

  private static void checkLease(Path path) {
    try {
      Lease.check(path);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override public FSDataInputStream open(Path path) {
    if (isSummed(path)) verify(path);
    return files.open(path);
  }

  /** Refuses a file that is not as it was written; one without a checksum is the supervisor's to judge. */
  private void verify(Path path) {
    String wanted;
    try {
      wanted = new String(read(sums(path)), StandardCharsets.UTF_8);
      var value = VALUE.matcher(wanted);
      byte[] content = read(path);
      if (value.find() && value.group(1).equals(Integer.toString(sum(content)))
          && value.group(2).equals(Integer.toString(content.length))) return;
    } catch (FileNotFoundException e) {
      // It has no checksum, or was purged during this look: an attempt to open it fails.
      return;
    } catch (IOException e) {
      throw new CodedFailure(CodedFailure.CHECKPOINT_DAMAGED, path + " or its checksum cannot be read: " + e.getMessage(), e);
    }
    throw new CodedFailure(CodedFailure.CHECKPOINT_DAMAGED, path + " was changed after it was written: its checksum does not match");
  }

  private byte[] read(Path path) throws IOException {
    try (FSDataInputStream in = files.open(path)) {
      return in.readAllBytes();
    }
  }

  private static int sum(byte[] content) {
    var crc = new CRC32C();
    crc.update(content, 0, content.length);
    return (int) crc.getValue();
  }

  /** Publishes the checksum of a file that is about to be published; refuses if another driver has published the file. */
  private void prepareSums(Path path, int value, long size) throws IOException {
    if (!(files instanceof StoreFiles)) {
      // The checksum of a file that another driver has published is not ours to replace.
      if (exists(path)) throw new FileAlreadyExistsException(path + " already exists");
      writeSums(path, value, size, true);
      return;
    }
    try {
      // A driver that was held up right here must not replace the checksum of its successor.
      writeSums(path, value, size, false);
    } catch (FileAlreadyExistsException e) {
      if (exists(path)) throw fenced(path, e);
      // Left by a driver that died before it published the file.
      writeSums(path, value, size, true);
    }
  }

  /** On a disk, the driver's lock keeps other drivers away. */
  private static FileAlreadyExistsException fenced(Path path, IOException cause) {
    var fenced = new FileAlreadyExistsException(
        CodedFailure.FENCED + ": cannot write " + path + ": another driver of this run has written it");
    fenced.initCause(cause);
    return fenced;
  }

  private void writeSums(Path path, int value, long size, boolean overwrite) throws IOException {
    // All fields of Spark's own form, so that it could read them.
    String text = "{\"algorithm\":\"CRC32C\",\"value\":" + value + ",\"mainFileSize\":" + size + ",\"timestampMs\":"
        + System.currentTimeMillis() + ",\"creator\":{\"executorId\":\"driver\",\"taskInfo\":\"\"}}";
    CancellableFSDataOutputStream out = files.createAtomic(sums(path), overwrite);
    try {
      out.write(text.getBytes(StandardCharsets.UTF_8));
      out.close();
    } catch (IOException | RuntimeException e) {
      out.cancel();
      throw e;
    }
  }

  @Override public FileStatus[] list(Path path, PathFilter filter) {
    return files.list(path, each -> !isSums(each) && filter.accept(each));
  }

  @Override public void mkdirs(Path path) {
    files.mkdirs(path);
  }

  @Override public boolean exists(Path path) {
    // Before Spark writes a log, it asks for it: a driver that lost its lease is told that, and not only of its successor's log.
    if (isSummed(path)) checkLease(path);
    return files.exists(path);
  }

  @Override public void delete(Path path) {
    checkLease(path);
    // First, so that no checksum stays behind: Spark deletes a file again that it still finds.
    if (isSummed(path)) files.delete(sums(path));
    files.delete(path);
  }

  @Override public boolean isLocal() {
    return files.isLocal();
  }

  @Override public Path createCheckpointDirectory() {
    return files.createCheckpointDirectory();
  }

  @Override public void close() {
    files.close();
  }

  /** A file in the making: its checksum is published right before it is. */
  private final class Summed extends CancellableFSDataOutputStream {
    private final Path path;
    private final CancellableFSDataOutputStream file;
    private boolean closed;

    Summed(Path path, CancellableFSDataOutputStream file) {
      super(new CheckedOutputStream(file, new CRC32C()));
      this.path = path;
      this.file = file;
    }

    @Override public void close() throws IOException {
      if (closed) return;
      closed = true;
      flush();
      Lease.check(path);
      prepareSums(path, (int) ((CheckedOutputStream) underlyingStream()).getChecksum().getValue(), getPos());
      CrashPoint.at("checksum-written");
      try {
        super.close();
      } catch (FileAlreadyExistsException e) {
        // Another driver was faster by an instant: the checksum has to be that of its file.
        byte[] content = read(path);
        writeSums(path, sum(content), content.length, true);
        throw files instanceof StoreFiles ? fenced(path, e) : e;
      }
    }

    @Override public void cancel() {
      closed = true;
      file.cancel();
    }
  }
}
