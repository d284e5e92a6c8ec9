package io.headgate.kernel.local;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Hadoop's local file system with permissions set by a system call. */
final class RawLocalFs extends RawLocalFileSystem {
  @Override public void setPermission(Path path, FsPermission p) throws IOException {
    try {
      Files.setPosixFilePermissions(pathToFile(path).toPath(),
          PosixFilePermissions.fromString(p.getUserAction().SYMBOL + p.getGroupAction().SYMBOL + p.getOtherAction().SYMBOL));
    } catch (UnsupportedOperationException e) {
      super.setPermission(path, p);
    }
  }
}
