package io.headgate.kernel.rolling;

import io.headgate.kernel.CodedFailure;
import io.headgate.kernel.checkpoint.StoreFiles;
import java.io.BufferedOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkEnv;
import org.apache.spark.deploy.SparkHadoopUtil;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream;

/** An output's folder on an object store that itself refuses to create an object which exists. */
final class StorePlace implements Place {
  private static final int BUFFER = 128 * 1024;

  private final String root;
  private transient StoreFiles files;

  StorePlace(String root) {
    this.root = root;
  }

  /** Spark's settings of Hadoop's file systems, in the driver and in executors. */
  private static final class Settings {
    static final Configuration HADOOP = SparkHadoopUtil.get().newConfiguration(SparkEnv.get().conf());
  }

  private Path path(String name) {
    // The constructor with one argument would take a colon in a name for the end of a scheme, and '%' is no escape here.
    return name.isEmpty() ? new Path(root) : new Path(new Path(root), new Path(null, null, name));
  }

  private StoreFiles files() throws IOException {
    if (files != null) return files;
    files = StoreFiles.find(new Path(root), Settings.HADOOP);
    if (files == null)
      throw new CodedFailure("FOLDER_UNSUPPORTED", "cannot write folder " + root
          + ": its store cannot create an object only if it is absent, which exactly-once output rests on");
    return files;
  }

  private FileSystem system() throws IOException {
    return new Path(root).getFileSystem(Settings.HADOOP);
  }

  @Override public List<Entry> list(String folder) throws IOException {
    var out = new ArrayList<Entry>();
    for (FileStatus is : files().list(path(folder), file -> true)) {
      if (is.isFile()) out.add(new Entry(is.getPath().getName(), is.getLen(), is.getModificationTime()));
    }
    out.sort(Comparator.comparing(Entry::name));
    return out;
  }

  @Override public List<String> folders(String folder) throws IOException {
    var out = new ArrayList<String>();
    for (FileStatus is : files().list(path(folder), file -> true)) if (is.isDirectory()) out.add(is.getPath().getName());
    return out;
  }

  @Override public boolean exists(String name) throws IOException {
    return size(name) >= 0;
  }

  @Override public long size(String name) throws IOException {
    try {
      return system().getFileStatus(path(name)).getLen();
    } catch (FileNotFoundException e) {
      return -1;
    }
  }

  @Override public InputStream open(String name) throws IOException {
    return system().open(path(name));
  }

  @Override public java.nio.file.Path work(String work) throws IOException {
    return Files.createDirectories(java.nio.file.Path.of(System.getProperty("java.io.tmpdir"), "headgate-rolling"));
  }

  @Override public Making make(String name, String work) throws IOException {
    return new StoreMaking(files().createAtomic(path(name), false));
  }

  @Override public boolean publish(java.nio.file.Path finished, String name) throws IOException {
    try (Making making = make(name, "")) {
      Files.copy(finished, making.out());
      return making.publish();
    } finally {
      Files.deleteIfExists(finished);
    }
  }

  @Override public void delete(String name) throws IOException {
    files().delete(path(name));
  }

  @Override public String nameOf(String name) {
    return root + "/" + name;
  }

  private static final class StoreMaking implements Making {
    private final CancellableFSDataOutputStream file;
    private final OutputStream out;

    StoreMaking(CancellableFSDataOutputStream file) {
      this.file = file;
      out = new BufferedOutputStream(file, BUFFER);
    }

    @Override public OutputStream out() {
      return out;
    }

    @Override public boolean publish() throws IOException {
      try {
        out.flush();
        file.close();
        return true;
      } catch (FileAlreadyExistsException e) {
        return false;
      }
    }

    /** Nothing happens where it was published. */
    @Override public void close() {
      file.cancel();
    }
  }
}
