package io.headgate.kernel.source;

import java.io.Serializable;

/** Something that has happened to a topic since it was last read, in words that stay the same while it stays so. */
public record Finding(Kind kind, String topic, String message) implements Serializable {
  public enum Kind { DATA_LOST, TOPIC_GREW, TOPIC_GONE, TOPIC_MADE_ANEW, TOPIC_ADDED }

  /** Returns whether records are gone that were not read. */
  public boolean isLoss() {
    return kind == Kind.DATA_LOST || kind == Kind.TOPIC_GONE || kind == Kind.TOPIC_MADE_ANEW;
  }
}
