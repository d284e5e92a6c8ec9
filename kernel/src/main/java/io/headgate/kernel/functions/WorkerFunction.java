package io.headgate.kernel.functions;

import com.fasterxml.jackson.databind.node.ObjectNode;

/** A function of the user's, as a worker loads it. */
public interface WorkerFunction {
  /** Returns the number by which calls name it. */
  int address();

  /** Returns how messages name it: its operator and its uid. */
  String name();

  /** Adds what a worker must know to call it. */
  void describe(ObjectNode node);
}
