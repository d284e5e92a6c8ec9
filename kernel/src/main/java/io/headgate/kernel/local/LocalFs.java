package io.headgate.kernel.local;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.StandardCopyOption;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FsServerDefaults;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * The local file system under Spark's checkpoints, without child processes.
 *
 * <p>Hadoop's own starts a process (chmod, readlink, ls) for every file where its native library is missing, which costs
 * more than the rest of a commit. Renaming here is the system's atomic one.
 */
public final class LocalFs extends DelegateToFileSystem {
  private static final long BLOCK = 32L << 20;

  public LocalFs(URI uri, Configuration conf) throws IOException, URISyntaxException {
    super(URI.create("file:///"), new RawLocalFs(), conf, "file", false);
  }

  private static java.nio.file.Path nio(Path path) {
    return new File(path.toUri().getPath()).toPath();
  }

  @Override public int getUriDefaultPort() { return -1; }

  @Override public boolean isValidName(String name) { return true; }

  @Override public FsServerDefaults getServerDefaults(Path path) throws IOException { return getServerDefaults(); }

  @Override public boolean supportsSymlinks() { return false; }

  @Override public FileStatus getFileLinkStatus(Path path) throws IOException { return getFileStatus(path); }

  @Override public FileStatus getFileStatus(Path path) throws IOException {
    File file = nio(path).toFile();
    if (!file.exists()) throw new FileNotFoundException("File " + path + " does not exist");
    return new FileStatus(file.length(), file.isDirectory(), 1, BLOCK, file.lastModified(), file.lastModified(),
        FsPermission.getFileDefault(), "", "", makeQualified(path));
  }

  @Override public void renameInternal(Path from, Path to) throws IOException {
    renameInternal(from, to, false);
  }

  @Override public void renameInternal(Path from, Path to, boolean overwrite) throws IOException {
    if (!overwrite) {
      // A link fails where the target exists, in one step; a move would replace it.
      try {
        Files.createLink(nio(to), nio(from));
        Files.delete(nio(from));
        return;
      } catch (java.nio.file.FileAlreadyExistsException e) {
        throw new FileAlreadyExistsException("rename destination " + to + " already exists.");
      } catch (UnsupportedOperationException | java.nio.file.FileSystemException e) {
        if (Files.exists(nio(to))) throw new FileAlreadyExistsException("rename destination " + to + " already exists.");
      }
    }
    Files.move(nio(from), nio(to), StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
  }
}
