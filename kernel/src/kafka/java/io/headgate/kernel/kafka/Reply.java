package io.headgate.kernel.kafka;

import java.util.concurrent.ExecutionException;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.errors.InterruptException;

/** A broker's answer, waited for. */
final class Reply {
  private Reply() {}

  static <T> T of(KafkaFuture<T> future) {
    try {
      return future.get();
    } catch (ExecutionException e) {
      throw e.getCause() instanceof RuntimeException r ? r : new KafkaException(e.getCause());
    } catch (InterruptedException e) {
      // Sets the thread's flag again.
      throw new InterruptException(e);
    }
  }
}
