package io.headgate.kernel.formats.registry;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.headgate.kernel.CodedFailure;
import io.headgate.kernel.secrets.References;
import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;

/** Requests to a schema registry. One that does not answer is asked again for half a minute. */
final class RegistryHttp {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Duration CONNECT = Duration.ofSeconds(5);
  private static final Duration REQUEST = Duration.ofSeconds(10);
  private static final long PATIENCE_NS = Duration.ofSeconds(30).toNanos();
  private static final long FIRST_PAUSE_MS = 100;
  private static final long LONGEST_PAUSE_MS = 3000;
  private static final String TYPE = "application/vnd.schemaregistry.v1+json";

  private final HttpClient client = HttpClient.newBuilder()
      // A registry behind a proxy may take the upgrade to HTTP/2 amiss.
      .version(HttpClient.Version.HTTP_1_1).connectTimeout(CONNECT).followRedirects(HttpClient.Redirect.NORMAL).build();
  private final References references;
  private final String base;
  private final String authorization;

  RegistryHttp(SchemaRegistry.Address address) {
    references = new References(address.carried());
    String url = references.resolve("registry", address.url()).strip();
    base = url.endsWith("/") ? url.substring(0, url.length() - 1) : url;
    authorization = authorization(address);
  }

  private String authorization(SchemaRegistry.Address address) {
    if (address.token() != null) return "Bearer " + references.resolve("registry.token", address.token());
    if (address.user() == null) return null;
    String login = references.resolve("registry.user", address.user()) + ":"
        + (address.password() == null ? "" : references.resolve("registry.password", address.password()));
    return "Basic " + Base64.getEncoder().encodeToString(login.getBytes(StandardCharsets.UTF_8));
  }

  /** Returns where the registry is, without secrets. */
  String where() {
    return base.replaceFirst("(?<=://)[^/@]*@", "");
  }

  /** What a registry has answered. */
  final class Answer {
    private final int status;
    private final String body;

    private Answer(int status, String body) {
      this.status = status;
      this.body = body;
    }

    int status() {
      return status;
    }

    /** Returns whether the registry says that it does not have what was asked for; a proxy would say less. */
    boolean isMissing(int code) {
      return status == 404 && json() != null && json().path("error_code").asInt() == code;
    }

    /** Returns the reason of a refusal. */
    String message() {
      String text = json() == null ? body : json().path("message").asText(body);
      String line = references.scrub(text.strip().replaceAll("\\s*\\R\\s*", " "));
      return line.length() > 500 ? line.substring(0, 500) + "…" : line;
    }

    /** Returns the answer to a request that succeeded, and fails otherwise. */
    JsonNode expect(String what) {
      if (status == 200 && json() != null) return json();
      throw new CodedFailure(CodedFailure.REGISTRY_REFUSED,
          "cannot get " + what + ": the schema registry at " + where() + " answered " + status
              + (body.isBlank() ? "" : ": " + message()));
    }

    private JsonNode json() {
      try {
        JsonNode read = JSON.readTree(body);
        return read != null && read.isObject() ? read : null;
      } catch (JsonProcessingException e) {
        return null;
      }
    }
  }

  Answer get(String path, String what) {
    return send(request(path, what).GET().build(), what);
  }

  Answer post(String path, String body, String what) {
    return send(request(path, what).header("Content-Type", TYPE).POST(HttpRequest.BodyPublishers.ofString(body)).build(), what);
  }

  private HttpRequest.Builder request(String path, String what) {
    try {
      var request = HttpRequest.newBuilder(URI.create(base + path)).timeout(REQUEST).header("Accept", TYPE + ", application/json");
      return authorization == null ? request : request.header("Authorization", authorization);
    } catch (IllegalArgumentException e) {
      throw new CodedFailure(CodedFailure.REGISTRY_REFUSED,
          "cannot get " + what + ": the address of the schema registry is not an http:// or https:// URL");
    }
  }

  /** Sends a request until it is answered, in the end with a failure that another attempt may not meet. */
  private Answer send(HttpRequest request, String what) {
    long began = System.nanoTime();
    String trouble;
    for (long pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      try {
        HttpResponse<String> response = client.send(request, HttpResponse.BodyHandlers.ofString());
        int status = response.statusCode();
        if (status < 500 && status != 429 && status != 408) return new Answer(status, response.body());
        trouble = "it answered " + status;
      } catch (ConnectException e) {
        trouble = "no connection" + (e.getMessage() == null ? "" : " (" + e.getMessage() + ")");
      } catch (IOException e) {
        trouble = e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
      } catch (InterruptedException e) {
        throw CodedFailure.interrupted("the schema registry");
      }
      if (System.nanoTime() - began + pause * 1_000_000 > PATIENCE_NS)
        throw new CodedFailure(CodedFailure.REGISTRY_UNREACHABLE,
            "cannot get " + what + ": the schema registry at " + where() + " does not answer: " + references.scrub(trouble));
      sleep(pause);
    }
  }

  private static void sleep(long ms) {
    try {
      Thread.sleep(ms);
    } catch (InterruptedException e) {
      throw CodedFailure.interrupted("the schema registry");
    }
  }
}
