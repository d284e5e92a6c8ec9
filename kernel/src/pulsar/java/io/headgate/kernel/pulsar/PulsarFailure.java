package io.headgate.kernel.pulsar;

import io.headgate.kernel.CodedFailure;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.apache.pulsar.client.api.PulsarClientException;

/** Something that went wrong with Pulsar, named by a code at the head of its message, which is one line without secrets. */
public final class PulsarFailure extends CodedFailure {
  public PulsarFailure(String code, String message) {
    super(code, message);
  }

  public PulsarFailure(String code, String message, Throwable cause) {
    super(code, message, cause);
  }

  /**
   * Returns what a client threw as what it means; what means nothing here is returned as it is.
   *
   * @param doing what could not be done, after the word cannot
   */
  public static RuntimeException of(Throwable thrown, String service, String doing) {
    Throwable e = thrown;
    while ((e instanceof ExecutionException || e instanceof CompletionException) && e.getCause() != null) e = e.getCause();
    if (e instanceof CodedFailure failure) return failure;
    // The client's own exception for it says nothing of the thread.
    if (e instanceof InterruptedException || e.getCause() instanceof InterruptedException) return interrupted();
    if (isMissing(e))
      return new PulsarFailure(TOPIC_MISSING, "cannot " + doing + ": there is no such topic at " + service, e);
    if (isRefusal(e))
      return new PulsarFailure(REFUSED, "cannot " + doing + ": the brokers at " + service + " refuse: " + e.getMessage(), e);
    if (isBadOption(e)) return new PulsarFailure(BAD_OPTION, "cannot " + doing + " at " + service + ": " + e.getMessage(), e);
    if (isOutage(e))
      return new PulsarFailure(UNREACHABLE, "cannot " + doing + ": no broker of " + service + " answers: " + e.getMessage(), e);
    return e instanceof RuntimeException r ? r : new IllegalStateException("cannot " + doing + ": " + e, e);
  }

  /** Returns what Spark takes for a query that was told to end. */
  static RuntimeException interrupted() {
    return interrupted("Pulsar");
  }

  static boolean isMissing(Throwable e) {
    return e instanceof PulsarClientException.TopicDoesNotExistException
        || e instanceof PulsarClientException.NotFoundException;
  }

  private static boolean isRefusal(Throwable e) {
    return e instanceof PulsarClientException.AuthenticationException
        || e instanceof PulsarClientException.AuthorizationException
        || e instanceof PulsarClientException.GettingAuthenticationDataException
        || e instanceof PulsarClientException.NotAllowedException
        || e instanceof PulsarClientException.IncompatibleSchemaException;
  }

  private static boolean isBadOption(Throwable e) {
    return e instanceof PulsarClientException.UnsupportedAuthenticationException
        || e instanceof PulsarClientException.InvalidServiceURL
        || e instanceof PulsarClientException.InvalidConfigurationException;
  }

  private static boolean isOutage(Throwable e) {
    return e instanceof PulsarClientException.TimeoutException
        || e instanceof PulsarClientException.LookupException
        || e instanceof PulsarClientException.ConnectException
        || e instanceof PulsarClientException.NotConnectedException
        || e instanceof PulsarClientException.ServiceNotReadyException
        || e instanceof PulsarClientException.TooManyRequestsException
        || e instanceof PulsarClientException.BrokerMetadataException
        || e instanceof PulsarClientException.BrokerPersistenceException;
  }
}
