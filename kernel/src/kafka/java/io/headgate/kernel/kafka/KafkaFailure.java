package io.headgate.kernel.kafka;

import io.headgate.kernel.CodedFailure;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.common.errors.AuthenticationException;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.DisconnectException;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.errors.TimeoutException;

/** Something that went wrong with Kafka, named by a code at the head of its message, which is one line without secrets. */
public final class KafkaFailure extends CodedFailure {
  public KafkaFailure(String code, String message) {
    super(code, message);
  }

  public KafkaFailure(String code, String message, Throwable cause) {
    super(code, message, cause);
  }

  /**
   * Returns what a client threw as what it means; what means nothing here is returned as it is.
   *
   * @param doing what could not be done, after the word cannot
   */
  public static RuntimeException of(Throwable thrown, String servers, String doing) {
    Throwable e = thrown;
    while ((e instanceof ExecutionException || e instanceof CompletionException) && e.getCause() != null) e = e.getCause();
    if (e instanceof CodedFailure failure) return failure;
    if (e instanceof InterruptException || e instanceof InterruptedException) return interrupted();
    if (e instanceof AuthenticationException || e instanceof AuthorizationException)
      return new KafkaFailure(REFUSED, "cannot " + doing + ": the brokers at " + servers + " refuse: " + e.getMessage(), e);
    if (e instanceof TimeoutException || e instanceof DisconnectException || e instanceof RetriableException)
      return new KafkaFailure(UNREACHABLE, "cannot " + doing + ": no broker of " + servers + " answers: " + e.getMessage(), e);
    return e instanceof RuntimeException r ? r : new IllegalStateException("cannot " + doing + ": " + e, e);
  }

  /** Returns what Spark takes for a query that was told to end. */
  static RuntimeException interrupted() {
    return interrupted("Kafka");
  }
}
