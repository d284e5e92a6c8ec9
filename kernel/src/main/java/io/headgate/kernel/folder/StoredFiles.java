package io.headgate.kernel.folder;

import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * A file system in front of another one, for libraries that open files themselves: what the storage fails to do is
 * {@link DataFile.Unreadable}. So any other failure is a fault of a file's content. It only reads.
 *
 * <p>Its paths are those of the other with {@code headgate-} before the scheme.
 */
public final class StoredFiles extends FileSystem {
  private static final String PREFIX = "headgate-";

  private URI uri;
  private FileSystem inner;

  /** Returns a path as this file system has it. */
  static Path of(Path path) {
    URI uri = path.toUri();
    return new Path(PREFIX + uri.getScheme(), uri.getAuthority(), uri.getPath());
  }

  /** Returns a configuration that knows this file system. */
  static Configuration configured(Configuration hadoop, String scheme) {
    var out = new Configuration(hadoop);
    out.setClass("fs." + PREFIX + scheme + ".impl", StoredFiles.class, FileSystem.class);
    // Of a file that has none, as most writers make them, nothing is checked.
    out.setBoolean("parquet.page.verify-checksum.enabled", true);
    return out;
  }

  /** Makes sure that files can be opened at all, so that no fault of a configuration looks like one of a file. */
  static FileSystem find(Path path, Configuration conf) throws IOException {
    try {
      return of(path).getFileSystem(conf);
    } catch (IOException | RuntimeException e) {
      throw new DataFile.Unreadable(path, e instanceof IOException io ? io : new IOException(e));
    }
  }

  private static Path real(Path path) {
    URI uri = path.toUri();
    return new Path(uri.getScheme().substring(PREFIX.length()), uri.getAuthority(), uri.getPath());
  }

  @Override public void initialize(URI name, Configuration conf) throws IOException {
    super.initialize(name, conf);
    uri = URI.create(name.getScheme() + (name.getAuthority() == null ? ":///" : "://" + name.getAuthority()));
    inner = Places.of(real(new Path(name.getScheme(), name.getAuthority(), "/")));
  }

  @Override public URI getUri() {
    return uri;
  }

  @Override public String getScheme() {
    return uri.getScheme();
  }

  @Override public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    try {
      return new FSDataInputStream(new Named(path, inner.open(real(path), bufferSize)));
    } catch (IOException e) {
      throw new DataFile.Unreadable(path, e);
    } catch (RuntimeException e) {
      throw new DataFile.Unreadable(path, new IOException(e));
    }
  }

  @Override public FileStatus getFileStatus(Path path) throws IOException {
    try {
      FileStatus found = inner.getFileStatus(real(path));
      return new FileStatus(
          found.getLen(), found.isDirectory(), found.getReplication(), found.getBlockSize(), found.getModificationTime(), path);
    } catch (IOException e) {
      // Also if it was deleted a moment ago: the next attempt says so.
      throw new DataFile.Unreadable(path, e);
    }
  }

  private static final class Named extends FSInputStream {
    private final Path path;
    private final FSDataInputStream in;

    Named(Path path, FSDataInputStream in) {
      this.path = path;
      this.in = in;
    }

    @Override public int read() throws IOException {
      try {
        return in.read();
      } catch (IOException e) {
        throw new DataFile.Unreadable(path, e);
      }
    }

    @Override public int read(byte[] into, int at, int length) throws IOException {
      try {
        return in.read(into, at, length);
      } catch (IOException e) {
        throw new DataFile.Unreadable(path, e);
      }
    }

    @Override public void seek(long place) throws IOException {
      // Beyond the end of the file is where a corrupted footer may lead: that is its content's fault.
      in.seek(place);
    }

    @Override public long getPos() throws IOException {
      return in.getPos();
    }

    @Override public boolean seekToNewSource(long target) {
      return false;
    }

    @Override public void close() throws IOException {
      in.close();
    }
  }

  @Override public FSDataOutputStream create(
      Path path, FsPermission permission, boolean overwrite, int bufferSize, short replication, long blockSize, Progressable progress) {
    throw readOnly();
  }

  @Override public FSDataOutputStream append(Path path, int bufferSize, Progressable progress) {
    throw readOnly();
  }

  @Override public boolean rename(Path from, Path to) {
    throw readOnly();
  }

  @Override public boolean delete(Path path, boolean recursive) {
    throw readOnly();
  }

  @Override public boolean mkdirs(Path path, FsPermission permission) {
    throw readOnly();
  }

  @Override public FileStatus[] listStatus(Path path) {
    throw readOnly();
  }

  @Override public void setWorkingDirectory(Path path) {
    throw readOnly();
  }

  @Override public Path getWorkingDirectory() {
    return new Path(uri.getScheme(), uri.getAuthority(), "/");
  }

  private static UnsupportedOperationException readOnly() {
    return new UnsupportedOperationException("data files are only read");
  }
}
