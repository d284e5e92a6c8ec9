package io.headgate.kernel.kafka;

import io.headgate.kernel.CodedFailure;
import org.apache.kafka.common.errors.AuthenticationException;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.DisconnectException;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.InvalidPidMappingException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.InvalidTxnStateException;
import org.apache.kafka.common.errors.InvalidTxnTimeoutException;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.errors.UnsupportedVersionException;

/** What writing can fail with. A producer in transactions throws the cause wrapped, and often again as the cause of more. */
final class Failures {
  static final String FENCED = "FENCED";
  static final String TOO_LARGE = "RECORD_TOO_LARGE";
  static final String AHEAD = "OUTPUT_AHEAD";
  static final String CHANGED = "OUTPUT_CHANGED";
  static final String MARKS_LOST = "MARKS_LOST";
  static final String MARKS_EXPIRE = "MARKS_EXPIRE";
  static final String TRANSACTION_TIMEOUT = "TRANSACTION_TIMEOUT";

  private Failures() {}

  /** Returns whether a broker takes a producer for an old one. */
  static boolean isFenced(Throwable thrown) {
    return find(thrown, ProducerFencedException.class, InvalidProducerEpochException.class,
        InvalidPidMappingException.class, InvalidTxnStateException.class) != null;
  }

  static boolean isTooLarge(Throwable thrown) {
    return find(thrown, RecordTooLargeException.class) != null;
  }

  /**
   * Returns what a client threw as what it means; what means nothing here is returned as it is.
   *
   * @param doing what could not be done, after the word cannot
   */
  static RuntimeException of(Throwable thrown, String servers, String doing) {
    Throwable gone = find(thrown, UnknownTopicOrPartitionException.class);
    if (gone != null)
      return new KafkaFailure(KafkaFailure.TOPIC_MISSING,
          "cannot " + doing + ": a topic was deleted at " + servers + ": " + gone.getMessage(), thrown);
    Throwable refused = find(
        thrown, InvalidTxnTimeoutException.class, PolicyViolationException.class, UnsupportedVersionException.class);
    if (refused != null)
      return new KafkaFailure(KafkaFailure.REFUSED,
          "cannot " + doing + ": the brokers at " + servers + " refuse: " + refused.getMessage(), thrown);
    Throwable known = find(thrown, CodedFailure.class, InterruptException.class, AuthenticationException.class,
        AuthorizationException.class, TimeoutException.class, DisconnectException.class);
    return KafkaFailure.of(known != null ? known : thrown, servers, doing);
  }

  /** Returns the first cause of one of these types, the exception itself included; null if there is none. */
  @SafeVarargs
  private static Throwable find(Throwable thrown, Class<? extends Throwable>... types) {
    for (Throwable at = thrown; at != null; at = at.getCause())
      for (Class<? extends Throwable> type : types) if (type.isInstance(at)) return at;
    return null;
  }
}
