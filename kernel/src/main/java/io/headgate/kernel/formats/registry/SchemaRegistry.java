package io.headgate.kernel.formats.registry;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.headgate.kernel.CodedFailure;
import io.headgate.kernel.formats.avro.AvroSchemas;
import io.headgate.kernel.json.BadRecord;
import io.headgate.kernel.json.BadRecord.Reason;
import io.headgate.kernel.secrets.Carried;
import java.io.Serializable;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.apache.avro.AvroRuntimeException;
import org.apache.avro.NameValidator;
import org.apache.avro.Schema;

/**
 * A schema registry with Confluent's REST API. There is one for each address in a process, and it asks for a schema once: schemas
 * never change.
 *
 * <p>A schema that the registry does not have is a {@link BadRecord}. A registry that does not answer is a
 * {@link CodedFailure}, which another attempt may not meet.
 */
public final class SchemaRegistry {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final ConcurrentHashMap<Address, SchemaRegistry> OPEN = new ConcurrentHashMap<>();
  private static final int SUBJECT_UNKNOWN = 40401;
  private static final int VERSION_UNKNOWN = 40402;
  private static final int SCHEMA_UNKNOWN = 40403;

  /**
   * How a registry is reached. Each text may have references, which are resolved where a client is made; to executors it carries
   * what they stand for.
   */
  public record Address(String url, String user, String password, String token, Carried carried) implements Serializable {
    /** @param json {@code url}, and {@code user} with {@code password}, or {@code token} */
    public static Address parse(JsonNode json) {
      return new Address(
          json.get("url").asText(), text(json, "user"), text(json, "password"), text(json, "token"), Carried.NOTHING);
    }

    private static String text(JsonNode json, String name) {
      return json.hasNonNull(name) ? json.get(name).asText() : null;
    }

    /** Called by Java where this is sent to a task. */
    private Object writeReplace() {
      if (!Carried.isNeeded() || carried != Carried.NOTHING) return this;
      List<String> values = Stream.of(url, user, password, token).filter(Objects::nonNull).toList();
      return new Address(url, user, password, token, Carried.of(values, null));
    }

    /** Returns this process's client. */
    public SchemaRegistry client() {
      return OPEN.computeIfAbsent(this, SchemaRegistry::new);
    }

    @Override public boolean equals(Object other) {
      return other instanceof Address a && a.url.equals(url) && Objects.equals(a.user, user)
          && Objects.equals(a.password, password) && Objects.equals(a.token, token);
    }

    @Override public int hashCode() {
      return Objects.hash(url, user, password, token);
    }

    @Override public String toString() {
      return url;
    }
  }

  /** A version of a subject. */
  public record Version(int id, int version, Schema schema) {}

  private final RegistryHttp http;
  private final ConcurrentHashMap<Integer, Schema> schemas = new ConcurrentHashMap<>();

  private SchemaRegistry(Address address) {
    http = new RegistryHttp(address);
  }

  /** Returns where the registry is, without secrets. */
  public String where() {
    return http.where();
  }

  /** Returns the schema that records name by its id. */
  public Schema schema(int id) throws BadRecord {
    Schema known = schemas.get(id);
    if (known != null) return known;
    RegistryHttp.Answer answer = http.get("/schemas/ids/" + id, "schema " + id);
    if (answer.isMissing(SCHEMA_UNKNOWN))
      throw new BadRecord(Reason.SCHEMA_UNKNOWN, "the schema registry at " + where() + " has no schema " + id);
    JsonNode found = answer.expect("schema " + id);
    try {
      Schema schema = parse(found, "schema " + id);
      schemas.put(id, schema);
      return schema;
    } catch (AvroRuntimeException | Unusable e) {
      throw new BadRecord(Reason.SCHEMA_INCOMPATIBLE, "schema " + id + " cannot be used: " + firstLine(e.getMessage()));
    }
  }

  /** Returns the newest version of a subject, or null if the registry has none. */
  public Version latest(String subject) {
    String what = "the latest version of subject '" + subject + "'";
    RegistryHttp.Answer answer = http.get("/subjects/" + encode(subject) + "/versions/latest", what);
    if (answer.isMissing(SUBJECT_UNKNOWN) || answer.isMissing(VERSION_UNKNOWN)) return null;
    JsonNode found = answer.expect(what);
    try {
      return new Version(found.get("id").asInt(), found.get("version").asInt(), parse(found, what));
    } catch (AvroRuntimeException | Unusable e) {
      throw new CodedFailure(CodedFailure.REGISTRY_REFUSED,
          "cannot use " + what + " of the schema registry at " + where() + ": " + firstLine(e.getMessage()));
    }
  }

  /** What the registry answered to a schema: its id, or the reason that it is refused. */
  public record Registered(int id, String refusal) {}

  /** Registers a schema; one that is registered already keeps its id. */
  public Registered register(String subject, Schema schema) {
    String what = "to register a schema for subject '" + subject + "'";
    ObjectNode body = JSON.createObjectNode().put("schema", schema.toString());
    RegistryHttp.Answer answer = http.post("/subjects/" + encode(subject) + "/versions", body.toString(), what);
    if (answer.status() == 409 || answer.status() == 422) return new Registered(0, answer.message());
    int id = answer.expect(what).get("id").asInt();
    return new Registered(id, null);
  }

  /** Returns how versions of a subject must be compatible, such as BACKWARD. */
  public String compatibility(String subject) {
    String what = "the compatibility level of subject '" + subject + "'";
    RegistryHttp.Answer own = http.get("/config/" + encode(subject) + "?defaultToGlobal=true", what);
    String level = own.status() == 404 ? "NONE" : level(own.expect(what));
    // Apicurio says NONE of a subject without a rule of its own.
    return level.equals("NONE") ? level(http.get("/config", what).expect(what)) : level;
  }

  private static String level(JsonNode found) {
    return found.path("compatibilityLevel").asText(found.path("compatibility").asText("unknown"));
  }

  private static final class Unusable extends RuntimeException {
    Unusable(String message) {
      super(message);
    }
  }

  /** Returns an answer's schema, with those it refers to. */
  private Schema parse(JsonNode answer, String what) {
    String type = answer.path("schemaType").asText("AVRO");
    if (!type.equals("AVRO")) throw new Unusable("it is of type " + type + ", not AVRO");
    // Other clients register names and defaults that Avro's specification does not allow; records can be read all the same.
    var parser = new Schema.Parser(NameValidator.NO_VALIDATION).setValidateDefaults(false);
    refer(parser, answer, what, 0);
    try {
      return AvroSchemas.checked(parser.parse(answer.get("schema").asText()));
    } catch (NullPointerException e) {
      // Avro 1.12.1 fails so on types that do not exist.
      throw new Unusable("it is not an Avro schema");
    }
  }

  private void refer(Schema.Parser parser, JsonNode answer, String what, int depth) {
    if (depth > 32) throw new Unusable("its references are nested in more than 32 levels");
    for (JsonNode reference : answer.path("references")) {
      if (parser.getTypes().containsKey(reference.path("name").asText())) continue;
      String path = "/subjects/" + encode(reference.get("subject").asText()) + "/versions/" + reference.get("version").asInt();
      JsonNode found = http.get(path, "what " + what + " refers to").expect("what " + what + " refers to");
      refer(parser, found, what, depth + 1);
      if (!parser.getTypes().containsKey(reference.path("name").asText())) parser.parse(found.get("schema").asText());
    }
  }

  static String firstLine(String text) {
    return text == null ? "unknown" : text.strip().lines().findFirst().orElse("unknown");
  }

  private static String encode(String subject) {
    return URLEncoder.encode(subject, StandardCharsets.UTF_8).replace("+", "%20");
  }
}
