package io.headgate.kernel.folder;

import io.headgate.kernel.formats.avro.Problem;
import io.headgate.kernel.formats.avro.ReaderPlan;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.avro.AvroRuntimeException;
import org.apache.avro.Schema;
import org.apache.avro.file.DataFileReader;
import org.apache.avro.file.SeekableInput;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;

/** The records of Avro's container files, by the schema of the file. A block belongs to the part that it begins in. */
final class AvroRecords implements FileRecords {
  private static final int SYNC = 16;

  private final FolderRecord form;
  private final Input input;
  private final DataFileReader<Object> file;
  private final Schema schema;
  private final ReaderPlan plan;
  private final long to;
  private byte[] block;
  private int at;
  private int end;
  private long left;
  private long number;

  AvroRecords(DataFile data, FolderSplit.Range range, FolderRecord form, StructType declared) throws IOException, BadRecord {
    this.form = form;
    to = range.to();
    Configuration conf = StoredFiles.configured(Places.hadoop(), data.path.toUri().getScheme());
    input = new Input(StoredFiles.find(data.path, conf).open(StoredFiles.of(data.path)), data.file.size());
    try {
      file = new DataFileReader<>(input, new GenericDatumReader<>());
      schema = file.getSchema();
      check(schema, declared);
      // Nulls are looked for row by row.
      plan = new ReaderPlan(schema, declared.asNullable(), null);
      long first = file.tell();
      if (range.from() > first) {
        file.sync(range.from());
        long begin = file.previousSync();
        number = before(first, begin);
        input.seek(begin);
        file.seek(begin);
      }
    } catch (IOException | BadRecord | RuntimeException e) {
      input.close();
      throw e;
    }
  }

  private static void check(Schema schema, StructType declared) throws BadRecord {
    if (schema.getType() != Schema.Type.RECORD) throw new BadRecord(Reason.BAD_FILE, "its schema must be a record, got " + schema.getType());
    Problem failure = new ReaderPlan(schema, declared, null).failure();
    if (failure != null) throw new BadRecord(Reason.BAD_FILE, "its schema does not fit: " + failure);
  }

  /** Returns how many records are between two blocks: each block begins with its number of records and of bytes. */
  private long before(long first, long begin) throws IOException {
    long records = 0;
    for (long place = first; place < begin;) {
      input.seek(place);
      records += number();
      long size = number();
      place = input.tell() + size + SYNC;
    }
    return records;
  }

  private long number() throws IOException {
    long out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      int b = input.in.read();
      if (b < 0) throw new EOFException("the file ends within a block");
      out |= (long) (b & 0x7f) << shift;
      if ((b & 0x80) == 0) break;
    }
    return (out >>> 1) ^ -(out & 1);
  }

  @Override public byte[] next() throws IOException {
    while (left == 0) if (!open()) return null;
    long row = number++;
    left--;
    int begin = at;
    try {
      UnsafeRow packed = plan.decodeFirst(block, begin, end - begin);
      at = plan.end();
      int size = packed.getSizeInBytes();
      byte[] record = form.make(row, size, size);
      Platform.copyMemory(
          packed.getBaseObject(), packed.getBaseOffset(), record, Platform.BYTE_ARRAY_OFFSET + record.length - size, size);
      return record;
    } catch (BadRecord e) {
      at = skip(begin);
      return form.refused(row, e.reason, e.getMessage());
    }
  }

  private boolean open() throws IOException {
    if (file.pastSync(to)) return false;
    if (!file.hasNext()) {
      // The library takes half a block for the end of the file.
      if (file.previousSync() < input.length()) throw new EOFException("the file ends within a block");
      return false;
    }
    ByteBuffer bytes = file.nextBlock();
    left = file.getBlockCount();
    block = bytes.array();
    at = bytes.arrayOffset() + bytes.position();
    end = at + bytes.remaining();
    return true;
  }

  /** Returns where the next record begins behind one that is no row. */
  private int skip(int begin) throws IOException {
    BinaryDecoder decoder = DecoderFactory.get().binaryDecoder(block, begin, end - begin, null);
    try {
      GenericDatumReader.skip(schema, decoder);
    } catch (AvroRuntimeException e) {
      throw new IOException("a record has no end: " + e.getMessage(), e);
    }
    return end - decoder.inputStream().available();
  }

  @Override public long place() {
    return number;
  }

  @Override public void close() throws IOException {
    file.close();
  }

  private static final class Input implements SeekableInput {
    private final FSDataInputStream in;
    private final long length;

    Input(FSDataInputStream in, long length) {
      this.in = in;
      this.length = length;
    }

    @Override public void seek(long place) throws IOException {
      in.seek(place);
    }

    @Override public long tell() throws IOException {
      return in.getPos();
    }

    @Override public long length() {
      return length;
    }

    @Override public int read(byte[] into, int at, int size) throws IOException {
      return in.read(into, at, size);
    }

    @Override public void close() throws IOException {
      in.close();
    }
  }
}
