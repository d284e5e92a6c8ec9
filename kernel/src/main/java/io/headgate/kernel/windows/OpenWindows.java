package io.headgate.kernel.windows;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;

/**
 * The windows of one key, by their beginning, and when the key is to be woken.
 *
 * <p>In state, little endian, format 1:
 *
 * <pre>
 *  0 u8  format (1)   1 i32 form of the aggregates   5 i64 when the key is due (the greatest number: never)   13 i32 windows
 * 17 of each window: u8 flags (1: final row written, 2: events no row has told of, 4: due), i64 start, i64 end, i64 events,
 *    i64 clock at the last row, i64 when the next early row is due (if it is), i32 length of what its aggregates hold, that
 * </pre>
 */
final class OpenWindows {
  private static final byte FORMAT = 1;
  private static final int DUE = 5;
  private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

  private final String name;
  private final List<Aggregate> aggregates;
  private final int form;
  private final StateReader reader = new StateReader();
  private final StateWriter writer = new StateWriter();
  /** Those in use, then those to be used again. */
  private OpenWindow[] windows = new OpenWindow[4];
  private int size;
  private OpenWindow[] chosen = new OpenWindow[1];
  private int choice;
  /** When the key is to be woken; {@link OpenWindow#NEVER} for never. */
  long due = OpenWindow.NEVER;

  /** @param name how errors call the operator */
  OpenWindows(String name, List<Aggregate> aggregates) {
    this.name = name;
    this.aggregates = aggregates;
    form = aggregates.stream().map(Aggregate::form).toList().hashCode();
  }

  /** Returns when a key is to be woken, of its state as it lies there. */
  static long due(byte[] state) {
    return (long) LONG.get(state, DUE);
  }

  int size() {
    return size;
  }

  OpenWindow get(int i) {
    return windows[i];
  }

  /** @param state null for a key that has none */
  void read(byte[] state) {
    size = 0;
    due = OpenWindow.NEVER;
    if (state == null) return;
    reader.point(state, 0);
    byte format = reader.getByte();
    if (format != FORMAT)
      throw new IllegalStateException("STATE_INCOMPATIBLE: cannot read state of " + name + ": its format is " + format);
    if (reader.getInt() != form)
      throw new IllegalStateException("STATE_INCOMPATIBLE: cannot read state of " + name + ": it was stored for other aggregates");
    due = reader.getLong();
    for (int left = reader.getInt(); left > 0; left--) append().read(reader, state);
  }

  byte[] write() {
    writer.clear();
    writer.putByte(FORMAT);
    writer.putInt(form);
    writer.putLong(due);
    writer.putInt(size);
    for (int i = 0; i < size; i++) windows[i].write(writer);
    return writer.toBytes();
  }

  /** Returns the window that begins at a moment, a new one if there is none. */
  OpenWindow at(long from, long end, long now) {
    int low = 0;
    int high = size;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (windows[middle].from < from) low = middle + 1;
      else high = middle;
    }
    if (low < size && windows[low].from == from) return windows[low];
    return insert(low, from, end, now);
  }

  /** Adds a window without asking whether there is one like it. */
  OpenWindow add(long from, long end, long now) {
    return insert(size, from, end, now);
  }

  private OpenWindow insert(int place, long from, long end, long now) {
    OpenWindow made = append();
    made.begin(from, end, now);
    System.arraycopy(windows, place, windows, place + 1, size - 1 - place);
    windows[place] = made;
    return made;
  }

  void remove(int i) {
    OpenWindow gone = windows[i];
    System.arraycopy(windows, i + 1, windows, i, size - i - 1);
    windows[--size] = gone;
  }

  // The windows that take the present event.

  void chooseNone() {
    choice = 0;
  }

  void choose(OpenWindow window) {
    if (choice == chosen.length) chosen = Arrays.copyOf(chosen, 2 * choice);
    chosen[choice++] = window;
  }

  int choice() {
    return choice;
  }

  OpenWindow chosen(int i) {
    return chosen[i];
  }

  private OpenWindow append() {
    if (size == windows.length) windows = Arrays.copyOf(windows, 2 * size);
    if (windows[size] == null) windows[size] = new OpenWindow(aggregates);
    return windows[size++];
  }
}
