package io.headgate.kernel.testing;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.headgate.kernel.functions.Epoch;
import io.headgate.kernel.functions.FunctionStage;
import io.headgate.kernel.functions.WorkerPool;
import io.headgate.kernel.plan.FlowPlan;
import io.headgate.kernel.process.ProcessProcessor;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.RawHeaders;
import io.headgate.kernel.rows.RawRecord;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Random;
import scala.Tuple2;

/** Runs a compiled flow batch by batch in memory, with the real decoders, operators and encoders, and no query. */
public final class FlowTester {
  private static final ObjectMapper JSON = new ObjectMapper(JsonFactory.builder()
      .streamReadConstraints(StreamReadConstraints.builder().maxStringLength(Integer.MAX_VALUE).build()).build());

  private final FlowPlan plan;
  private final List<MemoryOperator> operators = new ArrayList<>();
  private final List<MemoryHandle> saved = new ArrayList<>();
  private long batch;
  private long savedBatch;

  public FlowTester(FlowPlan plan) {
    this.plan = plan;
    for (var operator : plan.operators()) operators.add(new MemoryOperator(operator));
  }

  /** Continues another version of a flow: operators begin with what the one at their place held, as in a restored job. */
  public FlowTester(FlowPlan plan, FlowTester before) {
    this(plan);
    for (int i = 0; i < operators.size(); i++) operators.get(i).begin(before.operators.get(i).handle().held());
  }

  /** Has every operator begin anew with what its state holds, as a restored job does; bucket timers are not carried over. */
  public void restart() {
    for (var operator : operators) operator.restart();
  }

  /** Returns when the earliest timer by the clock is due; Long.MAX_VALUE without one. */
  public long nextAlarm() {
    return operators.stream().mapToLong(MemoryOperator::nextAlarm).min().orElse(Long.MAX_VALUE);
  }

  /** Remembers state and timers, for {@link #crash}. */
  public void save() {
    savedBatch = batch;
    saved.clear();
    for (var operator : operators) saved.add(operator.handle().copy());
  }

  /** Loses all that happened since {@link #save}, and the processes that called functions. */
  public void crash() {
    WorkerPool.endIdle(0);
    batch = savedBatch;
    for (int i = 0; i < operators.size(); i++) operators.get(i).open(saved.get(i).copy());
  }

  /**
   * Runs one batch.
   *
   * @param records JSON: a list of objects with source, value (base64 or null), partition, offset, timestamp, lane, sequence,
   *     and if there are any: topic, key (base64), headers (pairs in base64, of which the second may be null)
   * @param seed rows reach each operator in an order drawn from it, as after a shuffle
   * @param watermark as of this batch, in epoch ms; it must not go back
   * @param clock as of this batch, in epoch ms
   * @param oneByOne whether each row reaches operators alone, as in real-time mode
   * @return JSON: a list of objects with output (its address) and value (base64; null where rows are counted)
   */
  public String batch(String records, long seed, long watermark, long clock, boolean oneByOne)
      throws JsonProcessingException {
    var random = new Random(seed);
    List<Tuple2<Integer, byte[]>> rows = new ArrayList<>();
    for (JsonNode record : JSON.readTree(records)) {
      Iterator<Tuple2<Integer, byte[]>> made =
          plan.source(record.get("source").asText()).call(List.of(raw(record)).iterator());
      made.forEachRemaining(rows::add);
    }
    rows = call(rows, 0);
    int operator = 0;
    for (int stage = 1; stage <= plan.steps().size(); stage++) {
      Collections.shuffle(rows, random);
      var rebalance = plan.rebalance(plan.steps().get(stage - 1));
      if (rebalance == null) rows = operators.get(operator++).batch(rows, watermark, clock, oneByOne);
      else rows = list(rebalance.call(rows.iterator()));
      rows = call(rows, stage);
    }
    batch++;
    ArrayNode out = JSON.createArrayNode();
    for (var row : rows) {
      byte[] envelope = row._2();
      ObjectNode n = out.addObject();
      n.put("output", Envelope.address(envelope));
      if (Envelope.kind(envelope) == Envelope.COUNTED) n.putNull("value");
      else {
        int start = Envelope.start(envelope, 0);
        n.put("value", Arrays.copyOfRange(envelope, start, start + Envelope.length(envelope, 0)));
      }
    }
    return JSON.writeValueAsString(out);
  }

  private static List<Tuple2<Integer, byte[]>> list(Iterator<Tuple2<Integer, byte[]>> rows) {
    var out = new ArrayList<Tuple2<Integer, byte[]>>();
    rows.forEachRemaining(out::add);
    return out;
  }

  /** Calls the functions behind so many steps. */
  private List<Tuple2<Integer, byte[]>> call(List<Tuple2<Integer, byte[]>> rows, int stage) {
    FunctionStage functions = plan.calls(stage);
    if (functions == null) return rows;
    return list(functions.call(rows.iterator(), new Epoch(batch, 0, 1)));
  }

  /** Returns the greatest event time of each partition of a timed stream since the last call, as JSON by the partition's name. */
  public String times(String source) throws JsonProcessingException {
    return JSON.writeValueAsString(plan.times(source).take());
  }

  /**
   * Returns what an operator holds and when its buckets are woken.
   *
   * @param place the operator's among those that hold state, in the order rows pass through them
   * @return JSON: an object with held, a list of objects with bucket, key and value (both base64), and timers, a list of objects
   *     with bucket and moment (epoch ms); of a process function, held is its records and pages, and there are also
   *     timers_of_keys, alarms_of_keys and expiries_of_keys, whose entries are like those of held
   */
  public String state(int place) throws JsonProcessingException {
    MemoryHandle handle = operators.get(place).handle();
    ObjectNode out = JSON.createObjectNode();
    ArrayNode held = out.putArray("held");
    for (MemoryHandle.Held each : handle.held()) {
      int variable = ProcessProcessor.VARIABLES.indexOf(each.map());
      ArrayNode into = variable > 0 ? out.withArray("/" + each.map() + "_of_keys") : held;
      into.addObject().put("bucket", each.bucket()).put("key", each.key()).put("value", each.value());
    }
    ArrayNode timers = out.putArray("timers");
    for (MemoryHandle.Timer each : handle.timers()) timers.addObject().put("bucket", each.bucket()).put("moment", each.moment());
    return JSON.writeValueAsString(out);
  }

  private static byte[] raw(JsonNode n) {
    byte[] topic = n.path("topic").asText("").getBytes(StandardCharsets.UTF_8);
    byte[] key = bytes(n.path("key"));
    byte[] value = bytes(n.get("value"));
    byte[] headers = headers(n.path("headers"));
    byte[] record = RawRecord.make(
        topic, n.get("partition").asInt(), n.get("offset").asLong(), n.get("timestamp").asLong(),
        n.path("event_time").asLong(RawRecord.NO_TIME), n.get("lane").asInt(), n.get("sequence").asLong(),
        length(value, 0), length(key, RawRecord.NONE), length(headers, RawRecord.NONE), length(value, RawRecord.NONE));
    if (key != null) System.arraycopy(key, 0, record, RawRecord.keyStart(record), key.length);
    if (headers != null) System.arraycopy(headers, 0, record, RawRecord.headersStart(record), headers.length);
    if (value != null) System.arraycopy(value, 0, record, RawRecord.valueStart(record), value.length);
    return record;
  }

  private static byte[] headers(JsonNode pairs) {
    if (pairs.isMissingNode() || pairs.isEmpty()) return null;
    int size = 0;
    for (JsonNode pair : pairs) size += RawHeaders.size(bytes(pair.get(0)), bytes(pair.get(1)));
    byte[] out = new byte[size];
    int at = 0;
    for (JsonNode pair : pairs) at = RawHeaders.put(out, at, bytes(pair.get(0)), bytes(pair.get(1)));
    return out;
  }

  private static int length(byte[] bytes, int otherwise) {
    return bytes == null ? otherwise : bytes.length;
  }

  private static byte[] bytes(JsonNode base64) {
    return base64.isTextual() ? Base64.getDecoder().decode(base64.asText()) : null;
  }
}
