package io.headgate.kernel.testing;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.headgate.kernel.plan.FlowPlan;
import io.headgate.kernel.rows.Envelope;
import io.headgate.kernel.rows.RawHeaders;
import io.headgate.kernel.rows.RawRecord;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TwsTester;
import scala.Option;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/** Runs a compiled flow batch by batch in memory, with the real decoders, operators and encoders, and no query. */
public final class FlowTester {
  private static final ObjectMapper JSON = new ObjectMapper(JsonFactory.builder()
      .streamReadConstraints(StreamReadConstraints.builder().maxStringLength(Integer.MAX_VALUE).build()).build());

  private final FlowPlan plan;
  private final List<TwsTester<byte[], Tuple2<byte[], byte[]>, Tuple2<byte[], byte[]>>> operators = new ArrayList<>();
  /** State in memory is found by the key object, so equal keys must be the same one. */
  private final Map<String, byte[]> keys = new HashMap<>();

  public FlowTester(FlowPlan plan) {
    this.plan = plan;
    for (var operator : plan.operators())
      operators.add(new TwsTester<>(
          operator, scala.collection.immutable.List$.MODULE$.empty(), TimeMode.None(), OutputMode.Update(), Option.empty()));
  }

  /**
   * Runs one batch.
   *
   * @param records JSON: a list of objects with source, value (base64 or null), partition, offset, timestamp, lane, sequence,
   *     and if there are any: topic, key (base64), headers (pairs in base64, of which the second may be null)
   * @param seed rows reach each operator in an order drawn from it, as after a shuffle
   * @return JSON: a list of objects with output (its address) and value (text; null where rows are counted)
   */
  public String batch(String records, long seed) throws JsonProcessingException {
    var random = new Random(seed);
    List<Tuple2<byte[], byte[]>> rows = new ArrayList<>();
    for (JsonNode record : JSON.readTree(records)) {
      Iterator<Tuple2<byte[], byte[]>> made =
          plan.source(record.get("source").asText()).call(List.of(raw(record)).iterator());
      made.forEachRemaining(rows::add);
    }
    for (var operator : operators) {
      Collections.shuffle(rows, random);
      var groups = new LinkedHashMap<String, List<Tuple2<byte[], byte[]>>>();
      for (var row : rows)
        groups.computeIfAbsent(new String(row._1(), StandardCharsets.ISO_8859_1), k -> new ArrayList<>()).add(row);
      rows = new ArrayList<>();
      for (var group : groups.entrySet()) {
        byte[] key = keys.computeIfAbsent(group.getKey(), k -> k.getBytes(StandardCharsets.ISO_8859_1));
        var out = operator.test(key, CollectionConverters.asScala(group.getValue()).toList());
        rows.addAll(CollectionConverters.asJava(out));
      }
    }
    ArrayNode out = JSON.createArrayNode();
    for (var row : rows) {
      byte[] envelope = row._2();
      ObjectNode n = out.addObject();
      n.put("output", Envelope.address(envelope));
      if (Envelope.kind(envelope) == Envelope.COUNTED) n.putNull("value");
      else n.put("value", new String(envelope, Envelope.start(envelope, 0), Envelope.length(envelope, 0), StandardCharsets.UTF_8));
    }
    return JSON.writeValueAsString(out);
  }

  private static byte[] raw(JsonNode n) {
    byte[] topic = n.path("topic").asText("").getBytes(StandardCharsets.UTF_8);
    byte[] key = bytes(n.path("key"));
    byte[] value = bytes(n.get("value"));
    byte[] headers = headers(n.path("headers"));
    byte[] record = RawRecord.make(
        topic, n.get("partition").asInt(), n.get("offset").asLong(), n.get("timestamp").asLong(), n.get("lane").asInt(),
        n.get("sequence").asLong(), length(value, 0), length(key, RawRecord.NONE), length(headers, RawRecord.NONE),
        length(value, RawRecord.NONE));
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
