package io.headgate.kernel.functions;

import io.headgate.kernel.CodedFailure;
import java.io.IOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32C;

/**
 * A file of answers, written once and never replaced. Big endian.
 *
 * <pre>
 *  0 i64 "HGANSWER"   8 i32 format (1)   12 i32 how many answers, then for each:
 *  16 bytes the row's identity, i32 attempts, u8 0 for a result and 1 for an error, i32 length, the packed row or UTF-8 text
 *  last i32 CRC-32C of all before it
 * </pre>
 */
final class AnswerFile {
  private static final long MAGIC = 0x4847414e53574552L;
  private static final int FORMAT = 1;
  private static final int HEADER = Long.BYTES + 2 * Integer.BYTES;
  private static final int ENTRY = Answer.Identity.BYTES + 2 * Integer.BYTES + 1;

  private AnswerFile() {}

  /** Writes a file; returns false, and leaves the one that is there, if there is one of this name. */
  static boolean write(AnswerFolder folder, String file, List<Answer> answers) throws IOException {
    return folder.create(file, bytes(answers));
  }

  /** Returns the answers of a file, in the order in which they were written. */
  static List<Answer> read(AnswerFolder folder, String name) throws IOException {
    ByteBuffer from = ByteBuffer.wrap(folder.read(name));
    String file = folder.nameOf(name);
    try {
      return read(from, file);
    } catch (BufferUnderflowException | IllegalArgumentException | NegativeArraySizeException e) {
      throw corrupted(file, "it ends within an answer");
    }
  }

  private static byte[] bytes(List<Answer> answers) {
    var bodies = new ArrayList<byte[]>(answers.size());
    int size = HEADER + Integer.BYTES;
    for (Answer answer : answers) {
      byte[] body = answer.row() == null ? answer.error().getBytes(StandardCharsets.UTF_8) : answer.row();
      bodies.add(body);
      size += ENTRY + body.length;
    }
    ByteBuffer out = ByteBuffer.allocate(size).putLong(MAGIC).putInt(FORMAT).putInt(answers.size());
    for (int i = 0; i < bodies.size(); i++) {
      Answer answer = answers.get(i);
      answer.of().write(out);
      out.putInt(answer.attempts()).put((byte) (answer.row() == null ? 1 : 0)).putInt(bodies.get(i).length).put(bodies.get(i));
    }
    return out.putInt(sum(out.array(), out.position())).array();
  }

  private static List<Answer> read(ByteBuffer from, String file) {
    int end = from.limit() - Integer.BYTES;
    if (end < HEADER || from.getLong(0) != MAGIC) throw corrupted(file, "it does not begin like a file of answers");
    if (from.getInt(Long.BYTES) != FORMAT) throw corrupted(file, "its format is " + from.getInt(Long.BYTES) + ", not " + FORMAT);
    if (from.getInt(end) != sum(from.array(), end)) throw corrupted(file, "its checksum does not fit");
    int count = from.position(Long.BYTES + Integer.BYTES).getInt();
    var out = new ArrayList<Answer>();
    for (int i = 0; i < count; i++) {
      var of = Answer.Identity.read(from);
      int attempts = from.getInt();
      boolean failed = from.get() != 0;
      byte[] body = new byte[from.getInt()];
      from.get(body);
      out.add(new Answer(of, attempts, failed ? null : body, failed ? new String(body, StandardCharsets.UTF_8) : null));
    }
    return out;
  }

  private static int sum(byte[] bytes, int length) {
    var sum = new CRC32C();
    sum.update(bytes, 0, length);
    return (int) sum.getValue();
  }

  private static CodedFailure corrupted(String file, String why) {
    return new CodedFailure(CodedFailure.ANSWERS_CORRUPTED, "cannot repeat a batch: its recorded answers in " + file
        + " cannot be used: " + why);
  }
}
