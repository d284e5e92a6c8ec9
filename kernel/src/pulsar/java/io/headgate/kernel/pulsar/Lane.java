package io.headgate.kernel.pulsar;

import org.apache.pulsar.client.api.MessageIdAdv;

/**
 * The order of a partition's messages in two numbers.
 *
 * <p>A message's ledger, entry and place in a batch do not fit into one number. What does not fit into the sequence is part of
 * the lane: within a lane the sequence decides which change is newer, and across lanes the time does.
 */
final class Lane {
  private static final int LEDGER_BITS = 19;
  private static final int ENTRY_BITS = 24;
  private static final int INDEX_BITS = 20;

  private final int partition;
  private final int name;
  private long high = -1;
  private int lane;

  Lane(PulsarTopic topic, int partition) {
    this.partition = partition;
    name = 31 * topic.full().hashCode() + partition;
  }

  int partition() {
    return partition;
  }

  /** Returns the name of an ordered sequence that a message is part of. */
  int of(MessageIdAdv id) {
    long rest = (id.getLedgerId() >> LEDGER_BITS) << (63 - ENTRY_BITS) ^ id.getEntryId() >> ENTRY_BITS;
    if (rest != high) {
      high = rest;
      lane = (31 * name + Long.hashCode(rest)) & Integer.MAX_VALUE;
    }
    return lane;
  }

  /** Returns a message's place in its lane. */
  static long sequence(MessageIdAdv id) {
    long ledger = id.getLedgerId() & (1L << LEDGER_BITS) - 1;
    long entry = id.getEntryId() & (1L << ENTRY_BITS) - 1;
    return ledger << (ENTRY_BITS + INDEX_BITS) | entry << INDEX_BITS | Math.max(0, id.getBatchIndex());
  }
}
