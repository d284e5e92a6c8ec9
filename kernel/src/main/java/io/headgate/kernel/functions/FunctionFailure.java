package io.headgate.kernel.functions;

import io.headgate.kernel.CodedFailure;

/** A function that failed on a row, or a worker that ended, with the last lines that it wrote. */
public final class FunctionFailure extends CodedFailure {
  public static final String BAD_RESULT = "FUNCTION_BAD_RESULT";
  public static final String DIED = "PYTHON_WORKER_DIED";
  public static final String TOO_LARGE = "FUNCTION_MESSAGE_TOO_LARGE";

  public FunctionFailure(String code, String message) {
    super(code, message);
  }

  FunctionFailure(String code, String message, Throwable cause) {
    super(code, message, cause);
  }

  /** Returns the failure of a call whose values do not fit into one message. */
  static FunctionFailure tooLarge(String function, long most) {
    return new FunctionFailure(
        TOO_LARGE, function + ": what one call needs has more than the " + most + " bytes that one message holds");
  }
}
