package io.headgate.kernel.checkpoint;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.UUID;
import java.util.zip.CRC32C;
import java.util.zip.CheckedOutputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathFilter;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream;

/**
 * Checkpoint files on an object store: a file appears whole when its stream is closed, and the store itself refuses to create
 * one that exists. Nothing is renamed. There are no folders, only names that begin alike.
 *
 * <p>Spark's own managers rename a finished file, which S3A does in two steps after a look: two drivers could both succeed.
 */
public final class StoreFiles implements CheckpointFileManager {
  // Names of Hadoop 3.5. A file system that does not know the first is not one of these stores.
  static final String IF_ABSENT = "fs.option.create.conditional.overwrite";
  /** Nothing is looked up before a file is written. */
  private static final String WITHOUT_LOOK = "fs.s3a.create.performance";
  private static final String HEADER = "fs.s3a.create.header.";
  private static final String WRITER = "headgate-writer";
  private static final String ATTRIBUTE = "header." + WRITER;

  private final Path root;
  private final FileSystem fs;

  private StoreFiles(Path root, FileSystem fs) {
    this.root = root;
    this.fs = fs;
  }

  /** Returns the files below a path; null if it does not lie on an object store. */
  public static StoreFiles find(Path root, Configuration conf) throws IOException {
    String scheme = root.toUri().getScheme();
    if (scheme == null || scheme.equals("file")) return null;
    FileSystem fs = root.getFileSystem(conf);
    return fs.hasPathCapability(root, IF_ABSENT) ? new StoreFiles(root, fs) : null;
  }

  /** Writes a file; returns false, and leaves the one that is there, if there is one of this name. */
  public boolean create(Path path, byte[] content) throws IOException {
    CancellableFSDataOutputStream out = createAtomic(path, false);
    try {
      out.write(content);
      out.close();
      return true;
    } catch (FileAlreadyExistsException e) {
      return false;
    } finally {
      out.cancel();
    }
  }

  /** Returns the content of a file. */
  public byte[] read(Path path) throws IOException {
    try (FSDataInputStream in = fs.open(path)) {
      return in.readAllBytes();
    }
  }

  /** Returns when a file was written, by the store's clock, in epoch milliseconds. */
  long modifiedAt(Path path) throws IOException {
    return fs.getFileStatus(path).getModificationTime();
  }

  @Override public CancellableFSDataOutputStream createAtomic(Path path, boolean overwrite) {
    String writer = UUID.randomUUID().toString();
    return unchecked(() -> new StoreFile(path, overwrite ? null : writer, open(path, overwrite, writer)));
  }

  private FSDataOutputStream open(Path path, boolean overwrite, String writer) throws IOException {
    FSDataOutputStreamBuilder<?, ?> file = fs.createFile(path);
    file.overwrite(true);
    file.recursive();
    file.opt(WITHOUT_LOOK, true);
    if (!overwrite) {
      file.must(IF_ABSENT, true);
      file.opt(HEADER + WRITER, writer);
    }
    return (FSDataOutputStream) file.build();
  }

  @Override public FSDataInputStream open(Path path) {
    return unchecked(() -> fs.open(path));
  }

  @Override public FileStatus[] list(Path path, PathFilter filter) {
    return unchecked(() -> {
      try {
        return fs.listStatus(path, filter);
      } catch (FileNotFoundException e) {
        return new FileStatus[0];
      }
    });
  }

  @Override public void mkdirs(Path path) {
    // A folder is there with its first file.
  }

  @Override public boolean exists(Path path) {
    return unchecked(() -> fs.exists(path));
  }

  @Override public void delete(Path path) {
    unchecked(() -> {
      try {
        return fs.delete(path, true);
      } catch (FileNotFoundException e) {
        return false;
      }
    });
  }

  @Override public boolean isLocal() {
    return false;
  }

  @Override public Path createCheckpointDirectory() {
    return fs.makeQualified(root);
  }

  /** Something that is asked of the store. */
  private interface Request<T> {
    T send() throws IOException;
  }

  /** Throws what the store throws: Scala, whose interface this is, declares nothing. */
  private static <T> T unchecked(Request<T> request) {
    return StoreFiles.<T, RuntimeException>sneaking(request);
  }

  @SuppressWarnings("unchecked")
  private static <T, E extends Throwable> T sneaking(Request<T> request) throws E {
    try {
      return request.send();
    } catch (IOException e) {
      throw (E) e;
    }
  }

  /** A file in the making. */
  private final class StoreFile extends CancellableFSDataOutputStream {
    private final Path path;
    /** Marks the file as this stream's; null if the file may replace another. */
    private final String writer;
    private final FSDataOutputStream file;
    private boolean ended;

    StoreFile(Path path, String writer, FSDataOutputStream file) {
      super(new CheckedOutputStream(file, new CRC32C()));
      this.path = path;
      this.writer = writer;
      this.file = file;
    }

    @Override public synchronized void close() throws IOException {
      if (ended) return;
      ended = true;
      try {
        super.close();
      } catch (IOException e) {
        if (writer == null || !isThere(e)) throw e;
        // Its answer was lost, and the request that was sent again found the file of the first.
        if (isOurs()) return;
        var taken = new FileAlreadyExistsException(path + " already exists");
        taken.initCause(e);
        throw taken;
      }
    }

    private boolean isThere(IOException failure) {
      try {
        return fs.exists(path);
      } catch (IOException e) {
        failure.addSuppressed(e);
        return false;
      }
    }

    /** Tells whether this stream has written the file that is there. */
    private boolean isOurs() throws IOException {
      byte[] found = attribute();
      if (found != null) return Arrays.equals(found, writer.getBytes(StandardCharsets.UTF_8));
      byte[] content = read(path);
      var sum = new CRC32C();
      sum.update(content, 0, content.length);
      return content.length == getPos() && sum.getValue() == ((CheckedOutputStream) underlyingStream()).getChecksum().getValue();
    }

    /** Returns the mark of the file that is there; null where the store keeps none. */
    private byte[] attribute() throws IOException {
      try {
        return fs.getXAttr(path, ATTRIBUTE);
      } catch (UnsupportedOperationException e) {
        return null;
      }
    }

    @Override public synchronized void cancel() {
      if (ended) return;
      ended = true;
      // Closing it would publish it.
      file.abort();
    }
  }
}
