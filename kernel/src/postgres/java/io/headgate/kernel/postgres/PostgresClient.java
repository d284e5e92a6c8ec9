package io.headgate.kernel.postgres;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.headgate.kernel.secrets.Carried;
import io.headgate.kernel.secrets.References;
import java.io.Serializable;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.postgresql.Driver;

/**
 * How a database is reached: host, port, database, user, and options in the words of PostgreSQL's own clients.
 *
 * <p>It holds references. They are resolved where a connection is opened; to executors it carries what they stand for on the
 * driver. Two that are equal reach the same database in the same way.
 */
final class PostgresClient implements Serializable {
  /** A transaction may wait this long for its next rows: the session of a frozen task must not hold its locks for ever. */
  private static final String IDLE = "15min";
  /** The names of the driver for options. */
  private static final Map<String, String> OPTIONS = Map.of(
      "sslmode", "sslmode", "sslrootcert", "sslrootcert", "connect_timeout", "connectTimeout");
  private static final String CONNECT_SECONDS = "10";

  private final String text;
  private final Carried carried;

  private PostgresClient(String text, Carried carried) {
    this.text = text;
    this.carried = carried;
  }

  /** @param json {@code host}, {@code port}, {@code database}, {@code user}, {@code password}, {@code options}, {@code epochs} */
  static PostgresClient parse(String json) {
    var out = new PostgresClient(json, Carried.NOTHING);
    out.read();
    return out;
  }

  /** Called by Java where this is sent to a task. */
  private Object writeReplace() {
    if (!Carried.isNeeded()) return this;
    return new PostgresClient(text, Carried.of(List.of(read().path("password").asText("")), null));
  }

  private JsonNode read() {
    try {
      return new ObjectMapper().readTree(text);
    } catch (JsonProcessingException e) {
      // The parser's own message would quote the text.
      throw new IllegalArgumentException("not the description of a PostgreSQL client");
    }
  }

  /** Returns the server and the database, for messages. */
  String where() {
    JsonNode client = read();
    return client.get("host").asText() + ":" + client.get("port").asInt() + "/" + client.get("database").asText();
  }

  /** Returns the table that the committed epochs are noted in, quoted for SQL. */
  String epochs() {
    return Sql.table(read().get("epochs"));
  }

  /**
   * Opens a session that commits by itself.
   *
   * @param name what the server's list of sessions shows
   * @param doing what fails if it cannot be opened, after the word cannot
   */
  Connection open(String name, String doing) {
    JsonNode client = read();
    var references = new References(carried);
    var settings = new Properties();
    client.path("options").fields().forEachRemaining(each ->
        settings.setProperty(OPTIONS.get(each.getKey()), references.resolve(each.getKey(), each.getValue().asText())));
    settings.putIfAbsent("connectTimeout", CONNECT_SECONDS);
    if (client.hasNonNull("user")) settings.setProperty("user", client.get("user").asText());
    if (client.hasNonNull("password"))
      settings.setProperty("password", references.resolve("password", client.get("password").asText()));
    settings.setProperty("ApplicationName", name);
    settings.setProperty("tcpKeepAlive", "true");
    settings.setProperty("options", "-c idle_in_transaction_session_timeout=" + IDLE + " -c timezone=UTC");
    String url = "jdbc:postgresql://" + client.get("host").asText() + ":" + client.get("port").asInt() + "/"
        + URLEncoder.encode(client.get("database").asText(), StandardCharsets.UTF_8);
    try {
      return new Driver().connect(url, settings);
    } catch (SQLException e) {
      throw SqlFailures.of(e, where(), doing, references);
    }
  }

  @Override public boolean equals(Object other) {
    return other instanceof PostgresClient c && c.text.equals(text);
  }

  @Override public int hashCode() {
    return text.hashCode();
  }

  @Override public String toString() {
    return where();
  }
}
