package io.headgate.kernel.plan;

/** A flow that cannot be planned: a stable code, and a message that names the operator. */
public final class PlanException extends RuntimeException {
  private final String code;

  public PlanException(String code, String message) {
    super(message);
    this.code = code;
  }

  public String code() {
    return code;
  }
}
