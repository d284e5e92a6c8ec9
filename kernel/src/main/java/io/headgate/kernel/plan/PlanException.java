package io.headgate.kernel.plan;

/** A flow that cannot be planned: a stable code, a message that names the operator, and the next step. */
public final class PlanException extends RuntimeException {
  private final String code;
  private final String hint;

  /** Leaves the hint to the code. */
  public PlanException(String code, String message) {
    this(code, message, "");
  }

  public PlanException(String code, String message, String hint) {
    super(message);
    this.code = code;
    this.hint = hint;
  }

  public String code() {
    return code;
  }

  /** Returns the next step; empty where that of the code fits. */
  public String hint() {
    return hint;
  }
}
