package io.headgate.kernel.pulsar;

import java.io.Serializable;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The name of a topic on Pulsar.
 *
 * @param namespace without its tenant
 * @param local what users call the topic; that of a partition ends in {@code -partition-N}
 */
public record PulsarTopic(String tenant, String namespace, String local) implements Comparable<PulsarTopic>, Serializable {
  private static final Pattern FULL = Pattern.compile("persistent://([^/]+)/([^/]+)/([^/]+)");
  private static final String PARTITION = "-partition-";

  /** @param full such as {@code persistent://public/default/orders} */
  public static PulsarTopic parse(String full) {
    Matcher m = FULL.matcher(full);
    if (!m.matches())
      throw new PulsarFailure(PulsarFailure.BAD_START,
          "a topic must be persistent://tenant/namespace/name, got '" + full + "'");
    return new PulsarTopic(m.group(1), m.group(2), m.group(3));
  }

  public String full() {
    return "persistent://" + tenant + "/" + namespace + "/" + local;
  }

  /** Returns the name as it stands in the paths of the admin API. */
  public String path() {
    return encoded(tenant) + "/" + encoded(namespace) + "/" + encoded(local);
  }

  /** Returns the plain topic that holds a partition of this one. */
  public PulsarTopic partition(int i) {
    return new PulsarTopic(tenant, namespace, local + PARTITION + i);
  }

  /** Returns whether this is the plain topic of a partition. */
  public boolean isPartition() {
    return local.matches(".*" + PARTITION + "\\d+");
  }

  /** Returns whether this is one that Pulsar keeps for itself. */
  boolean isOwn() {
    return local.startsWith("__");
  }

  static String encoded(String part) {
    return URLEncoder.encode(part, StandardCharsets.UTF_8).replace("+", "%20");
  }

  @Override public int compareTo(PulsarTopic other) {
    return full().compareTo(other.full());
  }

  @Override public String toString() {
    return full();
  }
}
