package io.headgate.kernel.process;

import io.headgate.kernel.broadcast.BroadcastRows;
import io.headgate.kernel.functions.ArrowReceiver;
import io.headgate.kernel.functions.ArrowSender;
import io.headgate.kernel.functions.MessageBody;
import io.headgate.kernel.functions.MessageReader;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/** The rows of the exchanges of one task, of every kind: what a process function is given, and what it returns. */
final class CallRows implements AutoCloseable {
  final ArrowSender keys;
  final ArrowSender records;
  /** By the place of the input. */
  final ArrowSender[] events;

  private final ProcessSpec spec;
  private final List<AutoCloseable> open = new ArrayList<>();
  /** By the place of the output, or of the list or map; those that were not needed yet are null. */
  private final ArrowReceiver[] outputs;
  private final ArrowReceiver[] pages;
  private final ArrowSender[] fetches;
  private ArrowReceiver changed;
  private ArrowSender broadcast;

  CallRows(ProcessSpec spec) {
    this.spec = spec;
    keys = sender(spec.keys(), null);
    records = sender(spec.state().record().schema(), null);
    events = spec.inputs().stream()
        .map(each -> sender(each.sent(), each.sendsAll() ? null : each.columns())).toArray(ArrowSender[]::new);
    outputs = new ArrowReceiver[spec.outputs().size()];
    pages = new ArrowReceiver[spec.state().vars()];
    fetches = new ArrowSender[spec.state().vars()];
  }

  private ArrowSender sender(StructType type, int[] columns) {
    var out = new ArrowSender(spec.name(), type, columns);
    open.add(out);
    return out;
  }

  private ArrowReceiver receiver(StructType type) {
    var out = new ArrowReceiver(spec.name(), type);
    open.add(out);
    return out;
  }

  /** Writes a section with the rows that were added; without rows it is empty. */
  static void write(ArrowSender rows, MessageBody into) throws IOException {
    int section = into.begin();
    if (rows.rows() > 0) rows.writeTo(into);
    into.end(section);
  }

  /** Adds a page to those that answer a fetch; null for one that does not exist. */
  void addPage(int var, UnsafeRow page) {
    StructType type = spec.state().page(var).schema();
    if (fetches[var] == null) fetches[var] = sender(type, null);
    fetches[var].add(page == null ? new GenericInternalRow(type.length()) : page);
  }

  /** Returns the pages that were added. */
  ArrowSender fetched(int var) {
    return fetches[var];
  }

  /** Returns the rows of the broadcast table. */
  ArrowSender broadcast(BroadcastRows of) {
    if (broadcast == null) broadcast = sender(spec.broadcast().schema(), null);
    var row = new UnsafeRow(spec.broadcast().schema().length());
    for (BroadcastRows.Entry each : of.all()) {
      each.readInto(row);
      broadcast.add(row);
    }
    return broadcast;
  }

  /** Sends the rows of one output on their way: two sections, what each row is made of, and the rows. */
  void emitted(int output, MessageReader body, Emitted to) throws IOException {
    int many = body.next() / Integer.BYTES;
    int[] origins = new int[many];
    for (int i = 0; i < many; i++) origins[i] = body.intAt(Integer.BYTES * i);
    body.next();
    if (many == 0) return;
    if (outputs[output] == null) outputs[output] = receiver(spec.outputs().get(output).schema());
    read(outputs[output], body, many);
    for (int i = 0; i < many; i++) to.send(output, origins[i], outputs[output].get(i));
  }

  /** Puts changed records and pages into state. */
  void changed(MessageReader body, List<byte[]> of, KeyStore store) throws IOException {
    int many = body.next() / Integer.BYTES;
    byte[][] changedKeys = new byte[many][];
    for (int i = 0; i < many; i++) changedKeys[i] = of.get(body.intAt(Integer.BYTES * i));
    boolean[] removed = removed(body, many);
    body.next();
    if (many > 0) {
      if (changed == null) changed = receiver(spec.state().record().schema());
      read(changed, body, many);
      for (int i = 0; i < many; i++) store.setRecord(changedKeys[i], removed[i] ? null : changed.get(i));
    }
    for (int var = 0; var < pages.length; var++) changedPages(var, body, of, store);
  }

  private void changedPages(int var, MessageReader body, List<byte[]> of, KeyStore store) throws IOException {
    int many = body.next() / Integer.BYTES;
    byte[][] changedKeys = new byte[many][];
    for (int i = 0; i < many; i++) changedKeys[i] = of.get(body.intAt(Integer.BYTES * i));
    body.next();
    long[] numbers = new long[many];
    boolean[] removed = new boolean[many];
    for (int i = 0; i < many; i++) {
      numbers[i] = body.longAt(Long.BYTES * i);
      removed[i] = body.byteAt(Long.BYTES * many + i) != 0;
    }
    body.next();
    if (many == 0) return;
    if (pages[var] == null) pages[var] = receiver(spec.state().page(var).schema());
    read(pages[var], body, many);
    for (int i = 0; i < many; i++) store.setPage(changedKeys[i], var, numbers[i], removed[i] ? null : pages[var].get(i));
  }

  private static boolean[] removed(MessageReader body, int many) {
    body.next();
    boolean[] out = new boolean[many];
    for (int i = 0; i < many; i++) out[i] = body.byteAt(i) != 0;
    return out;
  }

  private void read(ArrowReceiver into, MessageReader body, int many) throws IOException {
    int rows = into.read(body.bytes(), body.start(), body.length());
    if (rows != many) throw new IllegalStateException(spec.name() + " returned " + rows + " rows, and announced " + many);
  }

  @Override public void close() {
    for (AutoCloseable each : open) {
      try {
        each.close();
      } catch (Exception e) {
        throw new IllegalStateException(e);
      }
    }
  }
}
