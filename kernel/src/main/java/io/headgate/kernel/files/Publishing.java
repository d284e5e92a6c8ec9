package io.headgate.kernel.files;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Putting a finished file in its place: whole, and never over one that is there. */
public final class Publishing {
  private Publishing() {}

  /** Moves a file; returns false, and leaves the one that is there, if the place is taken. */
  public static boolean publish(Path making, Path place) throws IOException {
    try {
      // A link fails where the place is taken, in one step.
      Files.createLink(place, making);
      Files.delete(making);
      return true;
    } catch (FileAlreadyExistsException e) {
      Files.delete(making);
      return false;
    } catch (UnsupportedOperationException | FileSystemException e) {
      return publishWithoutLinks(making, place);
    }
  }

  /** Some file systems have no links; there two who are at it in the same instant may both succeed. */
  private static boolean publishWithoutLinks(Path making, Path place) throws IOException {
    try {
      Files.move(making, place);
      return true;
    } catch (FileAlreadyExistsException e) {
      Files.delete(making);
      return false;
    }
  }
}
