package io.headgate.kernel.pulsar;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.headgate.kernel.secrets.Carried;
import io.headgate.kernel.secrets.References;
import java.io.IOException;
import java.io.Reader;
import java.io.Serializable;
import java.io.StringReader;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.impl.conf.ClientConfigurationData;
import org.apache.pulsar.client.impl.conf.ProducerConfigurationData;
import org.apache.pulsar.client.impl.conf.ReaderConfigurationData;

/**
 * How a cluster is reached: service, admin service, options in the Java client's terms, and a properties file that options
 * win over.
 *
 * <p>It holds references. They are resolved where a client is made, and the file is read then, too; to executors it carries what
 * they stand for on the driver. Two that are equal reach the same cluster in the same way.
 */
public final class ClientOptions implements Serializable {
  /** Whose options they are: those of the client have no prefix. */
  private enum Kind {
    CLIENT(ClientConfigurationData.class), READER(ReaderConfigurationData.class), PRODUCER(ProducerConfigurationData.class);

    private final Class<?> settings;

    Kind(Class<?> settings) {
      this.settings = settings;
    }

    private String prefix() {
      return this == CLIENT ? "" : name().toLowerCase(Locale.ROOT) + ".";
    }

    private static Kind of(String name) {
      for (Kind kind : values()) if (kind != CLIENT && name.startsWith(kind.prefix())) return kind;
      return CLIENT;
    }

    /** Returns whether Pulsar has an option of this name; it ignores others without a word. */
    private boolean knows(String name) {
      return Arrays.stream(settings.getDeclaredFields()).anyMatch(field -> field.getName().equals(name));
    }
  }

  /** How long a call to Pulsar may take before the cluster counts as out of reach. */
  public static final long PATIENCE_MS = 60_000;

  private static final String TOKEN = "token";
  private static final String TOKEN_PLUGIN = "org.apache.pulsar.client.impl.auth.AuthenticationToken";
  private static final Map<String, String> DEFAULTS = Map.of(
      // Nobody reads them.
      "statsIntervalSeconds", "0",
      // A producer that is held back by it waits without end; an outbox holds rows back before they come to it.
      "memoryLimitBytes", "0",
      "maxBackoffIntervalNanos", Long.toString(1_000_000_000L),
      "description", "headgate");

  private final String text;
  private final String service;
  private final String admin;
  private final TreeMap<String, String> options;
  private final String config;
  private final Carried carried;

  private ClientOptions(
      String text, String service, String admin, TreeMap<String, String> options, String config, Carried carried) {
    this.text = text;
    this.service = service;
    this.admin = admin;
    this.options = options;
    this.config = config;
    this.carried = carried;
  }

  /** @param json {@code service}, {@code admin}, {@code options} and {@code config}, the path of a properties file or null */
  public static ClientOptions parse(String json) {
    JsonNode client;
    try {
      client = new ObjectMapper().readTree(json);
    } catch (JsonProcessingException e) {
      // The parser's own message would quote the text.
      throw new IllegalArgumentException("not the description of a Pulsar client");
    }
    var options = new TreeMap<String, String>();
    client.path("options").fields().forEachRemaining(each -> options.put(each.getKey(), each.getValue().asText()));
    return new ClientOptions(json, client.get("service").asText(), client.get("admin").asText(), options,
        client.path("config").asText(null), Carried.NOTHING);
  }

  /** Called by Java where this is sent to a task. */
  private Object writeReplace() {
    return Carried.isNeeded() ? new ClientOptions(text, service, admin, options, config, Carried.of(options.values(), config)) : this;
  }

  /** Returns the brokers' URL, which is no secret. */
  public String service() {
    return service;
  }

  /** Returns the admin service's URL, which is no secret. */
  public String admin() {
    return admin;
  }

  /** Returns a client of its own; {@link Clients} has one for all. What goes wrong is told without any secret. */
  public PulsarClient open() {
    var references = new References(carried);
    Map<String, Object> settings = settings(Kind.CLIENT, references);
    try {
      return PulsarClient.builder().loadConf(settings).serviceUrl(service).build();
    } catch (PulsarClientException | RuntimeException e) {
      // The cause is left behind on purpose: nobody knows what its message quotes.
      throw new PulsarFailure(PulsarFailure.BAD_OPTION,
          "cannot create a Pulsar client for " + service + ": " + references.scrub(causes(e)));
    }
  }

  /** Returns what the client itself is made with; it holds secrets and is neither kept nor shown. */
  Map<String, Object> client() {
    return settings(Kind.CLIENT, new References(carried));
  }

  /** Returns what readers are told besides. */
  public Map<String, Object> reader() {
    return settings(Kind.READER, new References(carried));
  }

  /** Returns what producers are told besides. */
  public Map<String, Object> producer() {
    return settings(Kind.PRODUCER, new References(carried));
  }

  private static String causes(Throwable e) {
    Throwable last = e;
    while (last.getCause() != null) last = last.getCause();
    return last == e ? String.valueOf(e.getMessage()) : e.getMessage() + ": " + last.getMessage();
  }

  private Map<String, Object> settings(Kind kind, References references) {
    var given = new TreeMap<String, String>();
    Properties file = readConfig();
    file.stringPropertyNames().forEach(name -> given.put(name, file.getProperty(name)));
    given.putAll(options);
    var chosen = new HashMap<String, String>(kind == Kind.CLIENT ? DEFAULTS : Map.of());
    for (var each : given.entrySet()) {
      if (Kind.of(each.getKey()) != kind) continue;
      chosen.put(each.getKey().substring(kind.prefix().length()), references.resolve(each.getKey(), each.getValue()));
    }
    if (kind == Kind.CLIENT) login(chosen);
    for (String name : chosen.keySet())
      if (!kind.knows(name))
        throw new PulsarFailure(PulsarFailure.BAD_OPTION, "cannot reach " + service + ": Pulsar's "
            + kind.name().toLowerCase(Locale.ROOT) + " has no option '" + name + "'");
    return new HashMap<>(chosen);
  }

  private Properties readConfig() {
    var file = new Properties();
    if (config == null) return file;
    try (Reader in = new StringReader(carried.text(config))) {
      file.load(in);
      return file;
    } catch (IOException | IllegalArgumentException e) {
      throw new PulsarFailure(PulsarFailure.NO_CONFIG,
          "cannot read the options of Pulsar's clients from " + config + ": " + e.getClass().getSimpleName());
    }
  }

  /** Puts a token into the Java client's terms. */
  private static void login(Map<String, String> chosen) {
    String token = chosen.remove(TOKEN);
    if (token == null) return;
    if (chosen.containsKey("authPluginClassName") || chosen.containsKey("authParams"))
      throw new PulsarFailure(PulsarFailure.BAD_OPTION,
          "cannot log in: use either a token, or authPluginClassName and authParams, not both");
    chosen.put("authPluginClassName", TOKEN_PLUGIN);
    chosen.put("authParams", "token:" + token);
  }

  @Override public boolean equals(Object other) {
    return other instanceof ClientOptions o && o.text.equals(text);
  }

  @Override public int hashCode() {
    return text.hashCode();
  }

  /** Names the service alone: options may say more than a log should. */
  @Override public String toString() {
    return "pulsar(" + service + ")";
  }
}
