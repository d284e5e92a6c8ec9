package io.headgate.kernel.folder;

import io.headgate.kernel.CodedFailure;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.PathMatcher;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;

/**
 * Lists the data files of a folder. Hidden files and files in the making are left out: a name, or the name of a folder on the
 * way, that begins with {@code _} or {@code .}, and names that end with {@code .tmp}, {@code .crc} or {@code ._COPYING_}.
 */
final class FolderListing {
  private static final String[] UNFINISHED = {".tmp", ".crc", "._COPYING_"};

  /** A file as it is found, by its path relative to the folder. */
  record Found(String path, long size, long modified, String tag) {}

  private final Path root;
  private final FolderOptions options;
  private final PathMatcher glob;
  private final FileSystem fs;

  FolderListing(FolderOptions options) throws IOException {
    this.options = options;
    root = options.root();
    fs = Places.of(root);
    glob = options.glob() == null ? null : FileSystems.getDefault().getPathMatcher("glob:" + options.glob());
  }

  /** Returns all data files, in no order; none where the folder does not exist. */
  List<Found> list() throws IOException {
    var out = new ArrayList<Found>();
    if (root.toUri().getScheme().equals("file")) walk(java.nio.file.Path.of(root.toUri().getPath()), "", out);
    else listStore(out);
    return out;
  }

  /** One listing of all files below a prefix: on an object store, so many requests as there are thousands of files. */
  private void listStore(List<Found> out) throws IOException {
    Path full = fs.makeQualified(root);
    int prefix = full.toUri().getPath().length() + (full.toUri().getPath().endsWith("/") ? 0 : 1);
    RemoteIterator<LocatedFileStatus> files;
    try {
      files = fs.listFiles(full, true);
      while (files.hasNext()) {
        LocatedFileStatus each = files.next();
        String path = each.getPath().toUri().getPath().substring(prefix);
        if (takes(path)) out.add(new Found(path, each.getLen(), each.getModificationTime(), Places.tag(each)));
      }
    } catch (FileNotFoundException e) {
      // A prefix begins to exist with its first file.
    }
  }

  /** With one look at each file: Hadoop's own listing takes several, and may ask another program for its owner. */
  private void walk(java.nio.file.Path folder, String prefix, List<Found> out) throws IOException {
    try (DirectoryStream<java.nio.file.Path> children = Files.newDirectoryStream(folder)) {
      for (java.nio.file.Path child : children) {
        String name = child.getFileName().toString();
        if (isHidden(name)) continue;
        BasicFileAttributes a;
        try {
          a = Files.readAttributes(child, BasicFileAttributes.class);
        } catch (NoSuchFileException e) {
          continue;
        }
        String path = prefix + name;
        // A link to a folder could lead in circles.
        if (a.isDirectory() && !Files.isSymbolicLink(child)) walk(child, path + "/", out);
        if (a.isRegularFile() && takes(path)) {
          if (!java.nio.file.Path.of(root.toUri().getPath()).resolve(path).equals(child))
            throw new CodedFailure(CodedFailure.PATH_NOT_UTF8, "file " + child + " cannot be read: its name is not UTF-8");
          out.add(new Found(path, a.size(), a.lastModifiedTime().toMillis(), null));
        }
      }
    } catch (NoSuchFileException | NotDirectoryException e) {
      // Removed while it was looked at, or not yet made: there is nothing of it to list.
    }
  }

  private boolean takes(String path) {
    String[] parts = path.split("/");
    for (String part : parts) if (isHidden(part)) return false;
    String name = parts[parts.length - 1];
    for (String end : UNFINISHED) if (name.endsWith(end)) return false;
    if (!options.recursive() && !isPartitions(parts)) return false;
    return glob == null || glob.matches(java.nio.file.Path.of(name));
  }

  private boolean isPartitions(String[] parts) {
    for (int i = 0; i < parts.length - 1; i++) {
      int equals = parts[i].indexOf('=');
      if (equals < 0 || !options.partitions().contains(parts[i].substring(0, equals))) return false;
    }
    return true;
  }

  private static boolean isHidden(String name) {
    return name.startsWith("_") || name.startsWith(".");
  }
}
