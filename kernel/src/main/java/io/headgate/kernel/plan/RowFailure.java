package io.headgate.kernel.plan;

import io.headgate.kernel.CodedFailure;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import java.io.InterruptedIOException;
import java.nio.channels.ClosedByInterruptException;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.spark.SparkThrowable;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskKilledException;
import org.apache.spark.unsafe.Platform;

/** Tells exceptions of a row, which become dead letters, from those that end a task; an {@link Error} always does. */
public final class RowFailure {
  /** HotSpot leaves out the message of these where it has compiled the code that throws them: it is not always there. */
  private static final Set<Class<?>> WITHOUT_MESSAGE = Set.of(
      NullPointerException.class, ArithmeticException.class, ArrayIndexOutOfBoundsException.class, ArrayStoreException.class,
      ClassCastException.class);

  /** What differs between two processes: hash codes of objects and the names of lambdas. */
  private static final Pattern ADDRESS =
      Pattern.compile("(?<=[\\w;\\]])@[0-9a-f]{1,8}(?![\\w@]|[.-]\\w)|\\$\\$Lambda[\\w$]*(/(0x)?[0-9a-f]+)?");

  private RowFailure() {}

  /** Returns the reason of a dead letter; throws an exception on that is not of the row: of a task that was killed, or of a service. */
  public static BadRecord of(Reason code, Exception e) {
    if (isOfTask(e)) Platform.throwException(e);
    return new BadRecord(code, words(e));
  }

  private static boolean isOfTask(Exception e) {
    TaskContext task = TaskContext.get();
    if (Thread.currentThread().isInterrupted() || (task != null && task.isInterrupted())) return true;
    for (Throwable at = e; at != null; at = at.getCause()) {
      if (at instanceof InterruptedException || at instanceof TaskKilledException || at instanceof InterruptedIOException
          || at instanceof ClosedByInterruptException || at instanceof CodedFailure || at instanceof Error) return true;
    }
    return false;
  }

  /** Returns an exception as one line, which is the same in every attempt at the row. */
  private static String words(Exception e) {
    String message = WITHOUT_MESSAGE.contains(e.getClass()) ? null : e.getMessage();
    String name = e.getClass().getSimpleName();
    if (message == null || message.isBlank()) return name;
    String line = ADDRESS.matcher(message.strip().lines().findFirst().orElse("")).replaceAll("");
    return e instanceof SparkThrowable || e instanceof SizeLimits.ResultTooLarge ? line : name + ": " + line;
  }
}
