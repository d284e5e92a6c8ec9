package io.headgate.kernel.checkpoint;

import java.io.BufferedOutputStream;
import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Abortable;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * A folder that hosts share, such as a mount of NFS, with what {@link StoreFiles} asks of a store: {@code shared:/mnt/checkpoints}.
 *
 * <p>A file is written under a name of its own, and appears whole: by a link, which fails where the name is taken, or by a
 * rename, which replaces. Both are one step on the server. {@code _shared.py} writes the same way.
 */
public final class SharedFolder extends FileSystem {
  private static final URI NAME = URI.create("shared:///");
  private static final long BLOCK = 32L << 20;
  private static final int BUFFER = 1 << 16;
  /** Another host may remove a folder as empty, right before its next file is written. */
  private static final int TRIES = 5;

  private final RawLocalFileSystem disk = new RawLocalFileSystem();

  @Override public void initialize(URI name, Configuration conf) throws IOException {
    super.initialize(name, conf);
    setConf(conf);
    disk.initialize(URI.create("file:///"), conf);
  }

  @Override public String getScheme() { return "shared"; }

  @Override public URI getUri() { return NAME; }

  @Override public boolean hasPathCapability(Path path, String capability) throws IOException {
    return capability.equals(StoreFiles.IF_ABSENT) || super.hasPathCapability(path, capability);
  }

  private static java.nio.file.Path nio(Path path) {
    return new File(path.toUri().getPath()).toPath();
  }

  @Override public FSDataInputStream open(Path path, int buffer) throws IOException {
    return disk.open(new Path("file", null, path.toUri().getPath()), buffer);
  }

  @Override public FSDataOutputStream create(
      Path path, FsPermission permission, boolean overwrite, int buffer, short replication, long block, Progressable progress)
      throws IOException {
    return write(path, overwrite);
  }

  @SuppressWarnings("rawtypes")
  @Override public FSDataOutputStreamBuilder createFile(Path path) {
    return new Builder(this, path);
  }

  private FSDataOutputStream write(Path path, boolean overwrite) throws IOException {
    return new FSDataOutputStream(new Making(nio(path), overwrite), null);
  }

  @Override public FSDataOutputStream append(Path path, int buffer, Progressable progress) {
    throw new UnsupportedOperationException("files of a shared folder are written once");
  }

  @Override public boolean rename(Path from, Path to) throws IOException {
    Files.move(nio(from), nio(to), StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    return true;
  }

  @Override public boolean delete(Path path, boolean recursive) throws IOException {
    File file = nio(path).toFile();
    File[] inside = file.listFiles();
    if (inside != null && inside.length > 0) {
      if (!recursive) throw new IOException(path + " is not empty");
      for (File each : inside) delete(new Path(path, each.getName()), true);
    }
    return Files.deleteIfExists(file.toPath());
  }

  @Override public FileStatus[] listStatus(Path path) throws IOException {
    File folder = nio(path).toFile();
    String[] names = folder.list();
    if (names == null) {
      if (folder.isFile()) return new FileStatus[] {getFileStatus(path)};
      throw new FileNotFoundException(path + " does not exist");
    }
    var out = new ArrayList<FileStatus>(names.length);
    for (String name : names) {
      if (Making.is(name)) continue;
      try {
        out.add(getFileStatus(new Path(path, name)));
      } catch (FileNotFoundException e) {
        // It was removed during this look.
      }
    }
    return out.toArray(FileStatus[]::new);
  }

  @Override public void setWorkingDirectory(Path folder) {}

  @Override public Path getWorkingDirectory() { return new Path("shared:/"); }

  @Override public boolean mkdirs(Path path, FsPermission permission) throws IOException {
    Files.createDirectories(nio(path));
    return true;
  }

  @Override public FileStatus getFileStatus(Path path) throws IOException {
    File file = nio(path).toFile();
    if (!file.exists()) throw new FileNotFoundException(path + " does not exist");
    return new FileStatus(file.length(), file.isDirectory(), 1, BLOCK, file.lastModified(), makeQualified(path));
  }

  /** Returns no writer's mark: a link tells a file of this writer from another one, whatever is in it. */
  @Override public byte[] getXAttr(Path path, String name) {
    return new byte[0];
  }

  /** What {@link StoreFiles} asks for a file with. */
  private static final class Builder extends FSDataOutputStreamBuilder<FSDataOutputStream, Builder> {
    private final SharedFolder folder;

    Builder(SharedFolder folder, Path path) {
      super(folder, path);
      this.folder = folder;
    }

    @Override public Builder getThisBuilder() { return this; }

    @Override public FSDataOutputStream build() throws IOException {
      return folder.write(getPath(), !getOptions().getBoolean(StoreFiles.IF_ABSENT, false));
    }
  }

  /** A file in the making; it appears when it is closed. */
  private static final class Making extends OutputStream implements Abortable {
    private static final String BEGIN = ".";
    private static final String END = ".making";

    private final java.nio.file.Path path;
    private final java.nio.file.Path made;
    private final boolean overwrite;
    private final FileChannel channel;
    private final OutputStream out;
    private boolean ended;

    Making(java.nio.file.Path path, boolean overwrite) throws IOException {
      this.path = path;
      this.overwrite = overwrite;
      made = path.resolveSibling(BEGIN + path.getFileName() + "." + UUID.randomUUID() + END);
      channel = opened(made);
      out = new BufferedOutputStream(Channels.newOutputStream(channel), BUFFER);
    }

    static boolean is(String name) {
      return name.startsWith(BEGIN) && name.endsWith(END);
    }

    private static FileChannel opened(java.nio.file.Path file) throws IOException {
      for (int tried = 1;; tried++) {
        Files.createDirectories(file.getParent());
        try {
          return FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
        } catch (NoSuchFileException e) {
          if (tried == TRIES) throw e;
        }
      }
    }

    @Override public void write(int b) throws IOException { out.write(b); }

    @Override public void write(byte[] bytes, int from, int length) throws IOException { out.write(bytes, from, length); }

    @Override public void flush() throws IOException { out.flush(); }

    @Override public void close() throws IOException {
      if (ended) return;
      ended = true;
      try (channel) {
        out.flush();
        // Another host must not find a name without the content.
        channel.force(true);
        if (overwrite) Files.move(made, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        else link();
      } finally {
        Files.deleteIfExists(made);
      }
    }

    private void link() throws IOException {
      try {
        Files.createLink(path, made);
      } catch (java.nio.file.FileAlreadyExistsException e) {
        // NFS sends a request again whose answer was lost, and finds the link of the first.
        if (!Files.isSameFile(path, made)) throw new FileAlreadyExistsException(path + " already exists");
      }
    }

    @Override public AbortableResult abort() {
      ended = true;
      IOException failure = null;
      try (channel) {
        Files.deleteIfExists(made);
      } catch (IOException e) {
        failure = e;
      }
      IOException cleanup = failure;
      return new AbortableResult() {
        @Override public boolean alreadyClosed() { return false; }

        @Override public IOException anyCleanupException() { return cleanup; }
      };
    }
  }
}
