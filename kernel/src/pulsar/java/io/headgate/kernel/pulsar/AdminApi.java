package io.headgate.kernel.pulsar;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import javax.net.ssl.SSLException;

/**
 * Asks a cluster's admin service; paths are those below {@code /admin/v2/}, or begin with {@code v3/}.
 *
 * <p>An outage is waited out for a minute. Serves any thread; it holds one connection or some, and the JVM's clients of it
 * need not be closed.
 */
public final class AdminApi {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Duration CONNECT = Duration.ofSeconds(10);
  private static final Duration ANSWER = Duration.ofSeconds(30);
  private static final long AGAIN_MS = 250;
  private static final int NOT_FOUND = 404;
  /** What a broker says that does not own a topic yet, or no longer. */
  private static final int NOT_SERVED = 412;
  /** Where all that concerns transactions is, if the cluster has them and the user may ask. */
  private static final String V3 = "v3/";
  private static final String TURNED_OFF = "transactionCoordinatorEnabled";

  private static final Map<ClientOptions, AdminApi> SHARED = new ConcurrentHashMap<>();

  private final ClientOptions options;
  private final AdminAccess access;
  private final HttpClient http;

  public AdminApi(ClientOptions options) {
    this.options = options;
    access = AdminAccess.of(options);
    HttpClient.Builder builder = HttpClient.newBuilder()
        .version(HttpClient.Version.HTTP_1_1).followRedirects(HttpClient.Redirect.NORMAL).connectTimeout(CONNECT);
    if (options.admin().startsWith("https:")) builder.sslContext(access.trust());
    http = builder.build();
  }

  /** Returns the JVM's one for these options. */
  static AdminApi shared(ClientOptions options) {
    return SHARED.computeIfAbsent(options, AdminApi::new);
  }

  /** Returns an answer; that there is none is a failure. */
  public JsonNode get(String path) {
    return find(path).orElseThrow(() -> new PulsarFailure(PulsarFailure.TOPIC_MISSING,
        "cannot ask " + options.admin() + ": it knows nothing of " + path));
  }

  /** Returns an answer; empty where there is no such thing. */
  public Optional<JsonNode> find(String path) {
    return findAll(List.of(path)).get(0);
  }

  /** Returns answers in the order of what is asked, all of it at once. */
  public List<Optional<JsonNode>> findAll(List<String> paths) {
    var out = new ArrayList<Optional<JsonNode>>();
    for (HttpResponse<byte[]> response : ask(paths))
      out.add(isNothing(response) ? Optional.empty() : Optional.of(json(response)));
    return out;
  }

  /** Returns what an answer says in its headers; empty where there is no such thing. */
  Optional<HttpHeaders> findHeaders(String path) {
    return findAllHeaders(List.of(path)).get(0);
  }

  /** Returns the headers of answers in the order of what is asked, all of it at once. */
  List<Optional<HttpHeaders>> findAllHeaders(List<String> paths) {
    var out = new ArrayList<Optional<HttpHeaders>>();
    for (HttpResponse<byte[]> response : ask(paths))
      out.add(response.statusCode() == NOT_FOUND ? Optional.empty() : Optional.of(response.headers()));
    return out;
  }

  private JsonNode json(HttpResponse<byte[]> response) {
    try {
      return JSON.readTree(response.body());
    } catch (IOException e) {
      throw new PulsarFailure(PulsarFailure.REFUSED, "cannot ask " + options.admin() + ": its answer to "
          + response.request().uri().getPath() + " is not JSON");
    }
  }

  /** Asks until every answer is there, is a refusal, or a minute has gone. */
  private List<HttpResponse<byte[]>> ask(List<String> paths) {
    long deadline = System.nanoTime() + ClientOptions.PATIENCE_MS * 1_000_000L;
    for (;;) {
      String why;
      try {
        List<HttpResponse<byte[]>> found = askOnce(paths);
        Optional<HttpResponse<byte[]>> out = found.stream().filter(AdminApi::isOutage).findFirst();
        if (out.isEmpty()) return found;
        why = "it says " + out.get().statusCode() + reason(out.get());
      } catch (SSLException e) {
        // Waiting mends no certificate.
        throw new PulsarFailure(PulsarFailure.REFUSED, "cannot ask " + options.admin() + ": " + e.getMessage());
      } catch (IOException e) {
        why = "no answer (" + (e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage()) + ")";
      }
      if (System.nanoTime() > deadline)
        throw new PulsarFailure(PulsarFailure.UNREACHABLE, "cannot ask " + options.admin() + ": " + why);
      rest();
    }
  }

  private List<HttpResponse<byte[]>> askOnce(List<String> paths) throws IOException {
    var asked = new ArrayList<CompletableFuture<HttpResponse<byte[]>>>();
    for (String path : paths) asked.add(http.sendAsync(request(path), HttpResponse.BodyHandlers.ofByteArray()));
    var out = new ArrayList<HttpResponse<byte[]>>();
    try {
      for (var each : asked) out.add(checked(each.get()));
    } catch (InterruptedException e) {
      throw PulsarFailure.interrupted();
    } catch (ExecutionException e) {
      if (e.getCause() instanceof IOException io) throw io;
      throw PulsarFailure.of(e, options.admin(), "ask Pulsar's admin service");
    }
    return out;
  }

  private HttpRequest request(String path) {
    HttpRequest.Builder request = HttpRequest.newBuilder(
        URI.create(options.admin() + "/admin/" + (path.startsWith(V3) ? path : "v2/" + path))).timeout(ANSWER);
    access.headers().forEach(request::header);
    return request.build();
  }

  private HttpResponse<byte[]> checked(HttpResponse<byte[]> response) {
    int status = response.statusCode();
    if (status < 400 || isNothing(response) || isOutage(response)) return response;
    throw new PulsarFailure(PulsarFailure.REFUSED, "cannot ask " + options.admin() + " for "
        + response.request().uri().getPath() + ": it refuses with " + status + reason(response));
  }

  private static boolean isOutage(HttpResponse<byte[]> response) {
    return response.statusCode() >= 500 && !isTurnedOff(response) || response.statusCode() == NOT_SERVED;
  }

  private static boolean isNothing(HttpResponse<byte[]> response) {
    int status = response.statusCode();
    boolean denied = status >= 400 && status < 500 && status != NOT_SERVED && isOfTransactions(response);
    return status == NOT_FOUND || denied || isTurnedOff(response);
  }

  /** Returns whether a broker says that it has no transactions, which it says like an outage. */
  private static boolean isTurnedOff(HttpResponse<byte[]> response) {
    return response.statusCode() == 503 && isOfTransactions(response) && reason(response).contains(TURNED_OFF);
  }

  private static boolean isOfTransactions(HttpResponse<byte[]> response) {
    return response.request().uri().getPath().contains("/admin/" + V3);
  }

  /** Returns what Pulsar gives for a reason, behind a colon. */
  private static String reason(HttpResponse<byte[]> response) {
    try {
      String reason = JSON.readTree(response.body()).path("reason").asText("");
      return reason.isEmpty() ? "" : ": " + reason;
    } catch (IOException e) {
      return "";
    }
  }

  private static void rest() {
    try {
      Thread.sleep(AGAIN_MS);
    } catch (InterruptedException e) {
      throw PulsarFailure.interrupted();
    }
  }
}
