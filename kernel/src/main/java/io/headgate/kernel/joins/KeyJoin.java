package io.headgate.kernel.joins;

import io.headgate.kernel.functions.Ordinals;
import io.headgate.kernel.plan.Route;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.Header;
import io.headgate.kernel.rows.Layout;
import io.headgate.kernel.rows.SegmentedRow;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Tuple2;

/**
 * Joins the rows of one key at a time.
 *
 * <p>Each pair is made by the row of it that comes later: in a later call, or behind in the order of places within one. So it is
 * made once, however rows are distributed over calls. One object serves the keys of a task in turn.
 */
final class KeyJoin {
  /** How many pairs a call has in memory at most; the others are made when they are asked for. */
  private static final int MOST_AT_ONCE = 4096;
  private static final UTF8String[] SIDES = {UTF8String.fromString("left"), UTF8String.fromString("right")};

  private final JoinSpec spec;
  private final KeyRows rows;
  private final DueKeys due;
  private final SegmentedRow[] arriving = new SegmentedRow[2];
  /** Makes one packed row of several segments; null for a side whose rows are packed in one. */
  private final UnsafeProjection[] flatten = new UnsafeProjection[2];
  private final SegmentedRow[] alone = new SegmentedRow[2];
  private final SegmentedRow together;
  private final Header header = new Header();
  private SegmentedRow late;
  private UnsafeProjection packLate;

  // Of the present call.
  private JoinOutput out;
  private Integer bucket;
  private long watermark;
  private int pairs;
  /** Rows of the present key by side, for pairs that are made later; null until they are needed. */
  private final List<List<JoinRow>> kept = new ArrayList<>(Arrays.asList(null, null));

  KeyJoin(JoinSpec spec, KeyRows rows, DueKeys due) {
    this.spec = spec;
    this.rows = rows;
    this.due = due;
    for (int side = JoinRow.LEFT; side <= JoinRow.RIGHT; side++) {
      Layout input = spec.inputs().get(side);
      arriving[side] = new SegmentedRow(input);
      if (input.segments() > 1) flatten[side] = UnsafeProjection.create(input.schema());
      alone[side] = new SegmentedRow(Layout.of(input.schema()));
    }
    together = new SegmentedRow(spec.together());
  }

  /** Says in which bucket and at which watermark the calls that follow are, and where rows go. */
  void enter(Integer bucket, long watermark, JoinOutput out) {
    this.bucket = bucket;
    this.watermark = watermark;
    this.out = out;
    pairs = 0;
  }

  /** @param events rows of one key, by their places */
  void take(List<byte[]> events) {
    var arrivals = new ArrayList<JoinRow>(events.size());
    for (byte[] event : events) {
      int side = Envelope.address(event) == spec.address() ? JoinRow.LEFT : JoinRow.RIGHT;
      JoinRow row = JoinRow.arriving(event, side, arrivals.size());
      pack(row, event);
      if (row.time >= watermark || Envelope.isOnTime(event)) arrivals.add(row);
      else sendLate(row, event);
    }
    if (arrivals.isEmpty()) return;
    byte[] key = Envelope.last(events.get(0));
    rows.begin(key);
    kept.replaceAll(side -> null);
    // Nothing can be removed twice: a key that is about to be woken is looked through then.
    boolean waking = rows.due() <= watermark;
    join(arrivals);
    if (!waking) rows.expire(watermark).forEach(this::sendAlone);
    due.add(rows.save(false, watermark), key);
  }

  private void pack(JoinRow row, byte[] event) {
    if (flatten[row.side] == null) {
      row.bytes = event;
      row.start = Envelope.start(event, 0);
      row.length = Envelope.length(event, 0);
      return;
    }
    arriving[row.side].read(event);
    row.bytes = flatten[row.side].apply(arriving[row.side]).getBytes();
    row.length = row.bytes.length;
  }

  private void join(List<JoinRow> arrivals) {
    load(arrivals, JoinRow.LEFT);
    load(arrivals, JoinRow.RIGHT);
    for (JoinRow row : arrivals) rows.add(row);
    for (int side = JoinRow.LEFT; side <= JoinRow.RIGHT; side++)
      if (rows.rows(side).size() > 1) rows.rows(side).sort(JoinRow.BY_TIME);
    for (JoinRow row : arrivals) findMatches(row);
  }

  /** Loads what may match the rows that arrive on a side. */
  private void load(List<JoinRow> arrivals, int side) {
    if (rows.pages().isEmpty()) return;
    long first = Long.MAX_VALUE;
    long last = Long.MIN_VALUE;
    for (JoinRow row : arrivals) {
      if (row.side != side) continue;
      first = Math.min(first, row.time);
      last = Math.max(last, row.time);
    }
    if (first <= last) rows.load(1 - side, spec.from(side, first), spec.until(side, last));
  }

  private void findMatches(JoinRow row) {
    List<JoinRow> others = rows.rows(1 - row.side);
    long until = spec.until(row.side, row.time);
    int from = firstFrom(others, spec.from(row.side, row.time));
    int many = 0;
    int to = from;
    for (; to < others.size() && others.get(to).time <= until; to++) {
      if (!isBefore(others.get(to), row)) continue;
      rows.match(others.get(to));
      many++;
    }
    if (many == 0) return;
    rows.match(row);
    pairs += many;
    if (pairs <= MOST_AT_ONCE) new Pairs(row, others, from, to).send(many, out::add);
    else out.addLater(new Pairs(row, keep(1 - row.side), from, to));
  }

  /** Returns whether a row is there when another arrives; one that comes behind makes the pair itself. */
  private static boolean isBefore(JoinRow other, JoinRow row) {
    return other.order <= row.order;
  }

  /** Returns the rows of a side as they are now: the state of the next key takes their place. */
  private List<JoinRow> keep(int side) {
    if (kept.get(side) == null) kept.set(side, new ArrayList<>(rows.rows(side)));
    return kept.get(side);
  }

  /** The pairs of an arriving row with those of the other side from one place up to another. */
  private final class Pairs implements JoinOutput.Part {
    private final JoinRow row;
    private final List<JoinRow> others;
    private final int to;
    private int at;
    private int place;

    Pairs(JoinRow row, List<JoinRow> others, int from, int to) {
      this.row = row;
      this.others = others;
      this.to = to;
      at = from;
    }

    void send(int most, Route.Out out) {
      for (int left = most; left > 0 && at < to; at++) {
        if (!isBefore(others.get(at), row)) continue;
        sendPair(row, others.get(at), place++, out);
        left--;
      }
    }

    @Override public List<Tuple2<Integer, byte[]>> next() {
      var made = new ArrayList<Tuple2<Integer, byte[]>>();
      // A pair may make no row.
      while (made.isEmpty() && at < to) send(MOST_AT_ONCE, made::add);
      return made;
    }
  }

  private static int firstFrom(List<JoinRow> list, long time) {
    int low = 0;
    int high = list.size();
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (list.get(middle).time < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Lets go what is over of a key that is due. */
  void wake(byte[] key) {
    // A key whose moment has changed is registered twice.
    if (!rows.begin(key) || rows.due() > watermark) return;
    rows.expire(watermark).forEach(this::sendAlone);
    due.add(rows.save(true, watermark), key);
  }

  private void sendPair(JoinRow later, JoinRow other, int place, Route.Out out) {
    JoinRow left = later.side == JoinRow.LEFT ? later : other;
    JoinRow right = left == later ? other : later;
    together.set(0, left.bytes, left.start, left.length);
    together.set(1, right.bytes, right.start, right.length);
    later.describe(header);
    header.eventTime = Math.max(later.time, other.time);
    header.ordinal = spec.shared()
        ? Ordinals.ofSide(header.ordinal, later.side, place, spec.name()) : Ordinals.of(header.ordinal, place, spec.name());
    // Only a row that the watermark let go can bring a pair behind it.
    if (header.eventTime < watermark) header.flags = Envelope.ON_TIME;
    spec.matched().send(together, header, bucket, out);
  }

  private void sendAlone(JoinRow row) {
    SegmentedRow columns = alone[row.side];
    columns.set(0, row.bytes, row.start, row.length);
    row.describe(header);
    header.flags = Envelope.ON_TIME;
    (row.side == JoinRow.LEFT ? spec.leftOnly() : spec.rightOnly()).send(columns, header, bucket, out::add);
  }

  private void sendLate(JoinRow row, byte[] event) {
    if (late == null) {
      StructType schema = JoinSpec.lateSchema(spec.columns(JoinRow.LEFT), spec.columns(JoinRow.RIGHT));
      late = new SegmentedRow(Layout.of(schema));
      packLate = UnsafeProjection.create(schema);
    }
    var packed = new UnsafeRow(spec.columns(row.side).length());
    packed.pointTo(row.bytes, Platform.BYTE_ARRAY_OFFSET + (long) row.start, row.length);
    Object[] values = new Object[3];
    values[0] = SIDES[row.side];
    values[1 + row.side] = packed;
    late.set(packLate.apply(new GenericInternalRow(values)));
    header.read(event);
    spec.late().send(late, header, bucket, out::add);
  }
}
