package io.headgate.kernel.gate;

/** Ends a query between two batches; the engine takes it for a clean end. */
public final class StopAtBoundary extends RuntimeException {
  StopAtBoundary(String why) {
    super(why, null, false, false);
  }
}
