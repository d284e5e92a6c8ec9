package io.headgate.kernel.functions;

import io.headgate.kernel.rows.Envelope;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/**
 * What became of the call for one row.
 *
 * @param of the row
 * @param attempts how many were made
 * @param row the result, packed; null if all attempts failed
 * @param error why the last attempt failed; null if there is a result
 */
public record Answer(Identity of, int attempts, byte[] row, String error) {
  /** Tells one row of a batch from another, the same in every attempt: a digest of its position and its columns. */
  public record Identity(long high, long low) {
    static final int BYTES = 16;

    /** Returns that of a row; rows that nothing distinguishes share it. */
    static Identity of(byte[] envelope) {
      ByteBuffer position = ByteBuffer.allocate(2 * Integer.BYTES + 3 * Long.BYTES + Integer.BYTES);
      position.putInt(Envelope.source(envelope)).putInt(Envelope.partition(envelope)).putInt(Envelope.lane(envelope));
      position.putLong(Envelope.offset(envelope)).putLong(Envelope.sequence(envelope)).putLong(Envelope.ordinal(envelope));
      MessageDigest sum = sha256();
      sum.update(position.array());
      if (Envelope.segments(envelope) > 0) {
        int start = Envelope.start(envelope, 0);
        sum.update(envelope, start, envelope.length - start);
      }
      return read(ByteBuffer.wrap(sum.digest()));
    }

    static Identity read(ByteBuffer from) {
      return new Identity(from.getLong(), from.getLong());
    }

    void write(ByteBuffer into) {
      into.putLong(high).putLong(low);
    }
  }

  static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }
}
