package io.headgate.kernel;

import java.io.InterruptedIOException;
import java.io.UncheckedIOException;

/** Something that went wrong, named by a code at the head of its message, which is one line without secrets. */
public class CodedFailure extends RuntimeException {
  public static final String DATA_LOST = "DATA_LOST";
  public static final String TOPIC_MISSING = "TOPIC_MISSING";
  public static final String CHECKPOINT_DAMAGED = "CHECKPOINT_DAMAGED";
  public static final String BAD_START = "BAD_TOPIC";
  public static final String UNREACHABLE = "BROKER_UNREACHABLE";
  public static final String REFUSED = "BROKER_REFUSED";
  public static final String BAD_OPTION = "BAD_CLIENT_OPTION";
  public static final String NO_CONFIG = "CLIENT_CONFIG_UNREADABLE";
  public static final String LEDGER_BROKEN = "TOPIC_LEDGER_BROKEN";
  public static final String TOPIC_UNREADABLE = "TOPIC_UNREADABLE";
  public static final String PATH_NOT_UTF8 = "PATH_NOT_UTF8";
  public static final String NO_SECRET = "SECRET_NOT_FOUND";
  public static final String ANSWERS_CORRUPTED = "ANSWERS_CORRUPTED";
  public static final String FENCED = "FENCED";
  public static final String LEASE_HELD = "LEASE_HELD";
  public static final String LEASE_LOST = "LEASE_LOST";
  public static final String REGISTRY_UNREACHABLE = "REGISTRY_UNREACHABLE";
  public static final String REGISTRY_REFUSED = "REGISTRY_REFUSED";
  public static final String ANSWER_TOO_LARGE = "STATE_ANSWER_TOO_LARGE";

  public final String code;

  public CodedFailure(String code, String message) {
    this(code, message, null);
  }

  public CodedFailure(String code, String message, Throwable cause) {
    super(code + ": " + oneLine(message), cause);
    this.code = code;
  }

  /**
   * Returns what Spark takes for a query that was told to end.
   *
   * @param log what the thread waited for, such as Kafka
   */
  public static RuntimeException interrupted(String log) {
    Thread.currentThread().interrupt();
    return new UncheckedIOException(new InterruptedIOException("interrupted while waiting for " + log));
  }

  private static String oneLine(String text) {
    return text.strip().replaceAll("\\s*\\R\\s*", " ");
  }
}
