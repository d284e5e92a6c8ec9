package io.headgate.kernel.folder;

import io.headgate.kernel.CodedFailure;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** A numbered file as a task finds it. */
final class DataFile {
  /** A file could not be read, whatever its content is: another attempt may succeed. */
  static final class Unreadable extends IOException {
    Unreadable(Path path, IOException cause) {
      super("cannot read " + path + ": " + cause.getMessage(), cause);
    }

    /** Returns whether a failure comes from the storage, and not from the content of a file. */
    static boolean isBehind(Throwable failure) {
      for (Throwable each = failure; each != null; each = each.getCause()) if (each instanceof Unreadable) return true;
      return false;
    }
  }

  /** The file is not the one that was numbered; the message says what happened to it. */
  static final class Gone extends Exception {
    Gone(String message) {
      super(message, null, false, false);
    }
  }

  private final FileSystem fs;
  private final FileStatus status;
  final Path path;
  final NumberedFile file;

  private DataFile(FileSystem fs, FileStatus status, NumberedFile file) {
    this.fs = fs;
    this.status = status;
    this.path = status.getPath();
    this.file = file;
  }

  /** Looks for a file, which must still be the one that was numbered. */
  static DataFile find(Path path, NumberedFile file) throws IOException, Gone {
    try {
      FileSystem fs = Places.of(path);
      FileStatus status = fs.getFileStatus(path);
      if (!file.isSame(status.getLen(), status.getModificationTime(), Places.tag(status)))
        throw new Gone("file " + path + " was changed after it had been seen first: files must appear whole, and never change");
      return new DataFile(fs, status, file);
    } catch (FileNotFoundException e) {
      throw new Gone("file " + path + " was deleted before it was read");
    } catch (IOException e) {
      throw new Unreadable(path, e);
    } catch (RuntimeException e) {
      // Of the storage's client, such as for a lack of credentials.
      throw new Unreadable(path, new IOException(e));
    }
  }

  /** Opens the file from a byte on; what the storage fails to do is {@link Unreadable}. */
  InputStream open(long from) throws IOException {
    try {
      FSDataInputStream in = fs.openFile(path).withFileStatus(status).build().get();
      if (from > 0) in.seek(from);
      return new Named(in);
    } catch (IOException e) {
      throw new Unreadable(path, e);
    } catch (RuntimeException e) {
      throw new Unreadable(path, new IOException(e));
    } catch (InterruptedException e) {
      throw CodedFailure.interrupted("a file");
    } catch (java.util.concurrent.ExecutionException e) {
      throw new Unreadable(path, e.getCause() instanceof IOException io ? io : new IOException(e.getCause()));
    }
  }

  private final class Named extends InputStream {
    private final FSDataInputStream in;

    Named(FSDataInputStream in) {
      this.in = in;
    }

    @Override public int read() throws IOException {
      try {
        return in.read();
      } catch (IOException e) {
        throw new Unreadable(path, e);
      }
    }

    @Override public int read(byte[] into, int at, int length) throws IOException {
      try {
        return in.read(into, at, length);
      } catch (IOException e) {
        throw new Unreadable(path, e);
      }
    }

    @Override public void close() throws IOException {
      in.close();
    }
  }
}
