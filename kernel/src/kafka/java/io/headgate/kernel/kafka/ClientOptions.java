package io.headgate.kernel.kafka;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.headgate.kernel.secrets.Carried;
import io.headgate.kernel.secrets.References;
import java.io.IOException;
import java.io.Reader;
import java.io.Serializable;
import java.io.StringReader;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteBufferDeserializer;

/**
 * How a cluster is reached: servers, options in the Java client's terms, and a properties file that options win over.
 *
 * <p>It holds references. They are resolved where a client is made, and the file is read then, too; to executors it carries what
 * they stand for on the driver. Two that are equal reach the same cluster in the same way.
 */
public final class ClientOptions implements Serializable {
  /** The kinds of clients; each is a prefix of options that are for it alone. */
  public enum Kind {
    ADMIN, CONSUMER, PRODUCER;

    String prefix() {
      return name().toLowerCase(Locale.ROOT) + ".";
    }
  }

  /** How long a call to Kafka may take before the cluster counts as out of reach. */
  public static final long PATIENCE_MS = 60_000;

  private static final String PROVIDERS = "config.providers";
  private static final AtomicLong CLIENTS = new AtomicLong();

  private static final Map<String, String> DEFAULTS = Map.of(
      "default.api.timeout.ms", Long.toString(PATIENCE_MS),
      "request.timeout.ms", "30000",
      // Nobody reads them, and a consumer would register some hundred.
      "metric.reporters", "",
      "enable.metrics.push", "false",
      "reconnect.backoff.max.ms", "1000");
  private static final Map<String, String> CONSUMER_DEFAULTS = Map.of(
      "max.poll.records", "10000",
      // A consumer holds about two answers in memory, and a job has one for each source and task.
      "fetch.max.bytes", Integer.toString(16 << 20),
      "max.partition.fetch.bytes", Integer.toString(4 << 20),
      "receive.buffer.bytes", Integer.toString(1 << 20));
  /** What reading rests on: positions are ours, and a gap is an error rather than a jump. */
  private static final Map<String, String> CONSUMER_OWN = Map.of(
      "enable.auto.commit", "false",
      "auto.offset.reset", "none",
      "allow.auto.create.topics", "false");

  private final String text;
  private final String servers;
  private final TreeMap<String, String> options;
  private final String config;
  private final Carried carried;

  private ClientOptions(String text, String servers, TreeMap<String, String> options, String config, Carried carried) {
    this.text = text;
    this.servers = servers;
    this.options = options;
    this.config = config;
    this.carried = carried;
  }

  /** @param json {@code servers}, {@code options} and {@code config}, the path of a properties file or null */
  public static ClientOptions parse(String json) {
    JsonNode client;
    try {
      client = new ObjectMapper().readTree(json);
    } catch (JsonProcessingException e) {
      // The parser's own message would quote the text.
      throw new IllegalArgumentException("not the description of a Kafka client");
    }
    var options = new TreeMap<String, String>();
    client.path("options").fields().forEachRemaining(each -> options.put(each.getKey(), each.getValue().asText()));
    return new ClientOptions(json, client.get("servers").asText(), options, client.path("config").asText(null), Carried.NOTHING);
  }

  /** Called by Java where this is sent to a task. */
  private Object writeReplace() {
    return Carried.isNeeded() ? new ClientOptions(text, servers, options, config, Carried.of(options.values(), config)) : this;
  }

  /** Returns the servers' names and ports, which are no secret. */
  public String servers() {
    return servers;
  }

  /** Returns what an admin client is made with; it holds secrets and is neither kept nor shown. */
  public Map<String, Object> admin() {
    return settings(Kind.ADMIN, Map.of(), Map.of(), new References(carried));
  }

  /** Returns what a consumer without a group is made with; it holds secrets and is neither kept nor shown. */
  public Map<String, Object> consumer() {
    return settings(Kind.CONSUMER, CONSUMER_DEFAULTS, CONSUMER_OWN, new References(carried));
  }

  /** Returns what a producer is made with; it holds secrets and is neither kept nor shown. */
  public Map<String, Object> producer() {
    return settings(Kind.PRODUCER, Map.of(), Map.of(), new References(carried));
  }

  public Admin openAdmin() {
    return open(Kind.ADMIN, Map.of(), Map.of(), Admin::create);
  }

  /**
   * Returns a consumer without a group: partitions are assigned, positions are sought, nothing is committed.
   *
   * @param own what it needs besides, which wins over the user's options
   */
  public Consumer<ByteBuffer, ByteBuffer> openConsumer(Map<String, String> own) {
    var all = new HashMap<>(own);
    all.putAll(CONSUMER_OWN);
    return open(Kind.CONSUMER, CONSUMER_DEFAULTS, all,
        settings -> new KafkaConsumer<>(settings, new ByteBufferDeserializer(), new ByteBufferDeserializer()));
  }

  /**
   * Makes a client; what goes wrong is told without any secret.
   *
   * @param defaults what the user's options win over
   * @param own what wins over the user's options
   */
  public <C> C open(
      Kind kind, Map<String, String> defaults, Map<String, String> own, Function<Map<String, Object>, C> make) {
    var references = new References(carried);
    Map<String, Object> settings = settings(kind, defaults, own, references);
    try {
      return make.apply(settings);
    } catch (RuntimeException e) {
      // The cause is left behind on purpose: nobody knows what its message quotes.
      throw unmade(kind, references.scrub(causes(e)));
    }
  }

  private KafkaFailure unmade(Kind kind, String why) {
    // A name that cannot be looked up now may be found again.
    String code = why.contains("bootstrap url") ? KafkaFailure.UNREACHABLE : KafkaFailure.BAD_OPTION;
    String what = kind.name().toLowerCase(Locale.ROOT);
    return new KafkaFailure(code, "cannot create Kafka's " + what + " client for " + servers + ": " + why);
  }

  private static String causes(Throwable e) {
    Throwable last = e;
    while (last.getCause() != null) last = last.getCause();
    return last == e ? String.valueOf(e.getMessage()) : e.getMessage() + ": " + last.getMessage();
  }

  private Map<String, Object> settings(
      Kind kind, Map<String, String> defaults, Map<String, String> own, References references) {
    var chosen = new HashMap<String, String>(DEFAULTS);
    chosen.put("client.id", "headgate-" + kind.prefix().replace(".", "-") + CLIENTS.incrementAndGet());
    chosen.putAll(defaults);
    Properties file = readConfig();
    var given = new TreeMap<String, String>();
    file.stringPropertyNames().forEach(name -> given.put(name, file.getProperty(name)));
    // A file that names providers of Kafka's own has its references resolved by them.
    if (!file.containsKey(PROVIDERS)) given.replaceAll(references::resolve);
    choose(given, kind, chosen);
    var mine = new TreeMap<>(options);
    mine.replaceAll(references::resolve);
    choose(mine, kind, chosen);
    translate(chosen);
    chosen.putAll(own);
    if (kind == Kind.CONSUMER) chosen.remove("group.id");
    if (!servers.isEmpty()) chosen.put("bootstrap.servers", servers);
    return new HashMap<>(chosen);
  }

  private Properties readConfig() {
    var file = new Properties();
    if (config == null) return file;
    try (Reader in = new StringReader(carried.text(config))) {
      file.load(in);
      return file;
    } catch (IOException | IllegalArgumentException e) {
      throw new KafkaFailure(KafkaFailure.NO_CONFIG,
          "cannot read the options of Kafka's clients from " + config + ": " + e.getClass().getSimpleName());
    }
  }

  /** Takes what is for every kind of client, then what is for this one. */
  private static void choose(Map<String, String> given, Kind kind, Map<String, String> chosen) {
    for (var each : given.entrySet()) if (kindOf(each.getKey()) == null) chosen.put(each.getKey(), each.getValue());
    for (var each : given.entrySet())
      if (kindOf(each.getKey()) == kind) chosen.put(each.getKey().substring(kind.prefix().length()), each.getValue());
  }

  private static Kind kindOf(String name) {
    for (Kind kind : Kind.values()) if (name.startsWith(kind.prefix())) return kind;
    return null;
  }

  /** Puts what the Java client does not know into its terms: a name and a password, and a file of certificates. */
  private static void translate(Map<String, String> chosen) {
    String authority = chosen.remove("ssl.ca.location");
    if (authority != null && !chosen.containsKey("ssl.truststore.location")) {
      chosen.put("ssl.truststore.type", "PEM");
      chosen.put("ssl.truststore.location", authority);
    }
    String user = chosen.remove("sasl.username");
    String password = chosen.remove("sasl.password");
    if (user == null && password == null || chosen.containsKey("sasl.jaas.config")) return;
    if (user == null || password == null)
      throw new KafkaFailure(KafkaFailure.BAD_OPTION,
          "cannot log in: sasl.username and sasl.password must both be set, got only " + (user == null ? "the password" : "the name"));
    String mechanism = chosen.getOrDefault("sasl.mechanism", "none");
    if (!mechanism.equals("PLAIN") && !mechanism.startsWith("SCRAM-"))
      throw new KafkaFailure(KafkaFailure.BAD_OPTION,
          "cannot log in: with sasl.username, sasl.mechanism must be PLAIN or SCRAM-SHA-512, got " + mechanism);
    String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
    chosen.put("sasl.jaas.config", "org.apache.kafka.common.security." + module + " required username=\""
        + References.escape(user) + "\" password=\"" + References.escape(password) + "\";");
  }

  @Override public boolean equals(Object other) {
    return other instanceof ClientOptions o && o.text.equals(text);
  }

  @Override public int hashCode() {
    return text.hashCode();
  }

  /** Names the servers alone: options may say more than a log should. */
  @Override public String toString() {
    return "kafka(" + servers + ")";
  }
}
