package io.headgate.kernel.secrets;

import io.headgate.kernel.CodedFailure;
import java.io.IOException;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Values that are named rather than written down: {@code ${env:NAME}} and {@code ${file:/path}}, the file's text trimmed.
 *
 * <p>Remembers what it resolved, so that nothing of it gets into a message.
 */
public final class References {
  static final Pattern REFERENCE = Pattern.compile("\\$\\{(env|file):([^}]+)}");
  private static final Pattern SECRET = Pattern.compile(
      "(password|secret|sasl\\.jaas\\.config|keystore\\.key|token|authParams)$", Pattern.CASE_INSENSITIVE);
  /** The least that is taken for a secret: a shorter one would blot out half the words of a message. */
  private static final int SHORTEST = 3;

  private final Map<String, String> environment;
  private final Carried carried;
  private final Set<String> secrets = new HashSet<>();

  /** @param carried what the driver has found of the references */
  public References(Carried carried) {
    this.carried = carried;
    environment = carried.variables();
  }

  /** Returns a value with what its references stand for. */
  public String resolve(String name, String value) {
    Matcher m = REFERENCE.matcher(value);
    var out = new StringBuilder();
    while (m.find()) {
      String found = m.group(1).equals("env") ? variable(name, m.group(2)) : text(name, m.group(2));
      keep(found);
      // Inside a login's line a value stands in quotes, and must not end them.
      boolean within = name.endsWith("sasl.jaas.config") && !m.group().equals(value.strip());
      m.appendReplacement(out, Matcher.quoteReplacement(within ? escape(found) : found));
    }
    m.appendTail(out);
    if (SECRET.matcher(name).find()) keep(out.toString());
    return out.toString();
  }

  /** Returns a text as it must stand between the double quotes of a login's line. */
  public static String escape(String text) {
    return text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n").replace("\r", "\\r");
  }

  /** Returns a message without anything that was resolved. */
  public String scrub(String message) {
    String out = message;
    for (String secret : secrets) out = out.replace(secret, "***");
    return out;
  }

  private void keep(String secret) {
    if (secret.length() < SHORTEST) return;
    secrets.add(secret);
    secrets.add(escape(secret));
  }

  private String variable(String option, String name) {
    String found = environment.get(name);
    if (found == null)
      throw new CodedFailure(CodedFailure.NO_SECRET,
          "cannot resolve ${env:" + name + "} for " + option + ": there is no such variable");
    return found;
  }

  private String text(String option, String file) {
    try {
      return carried.text(file).strip();
    } catch (IOException | RuntimeException e) {
      throw new CodedFailure(CodedFailure.NO_SECRET,
          "cannot resolve ${file:" + file + "} for " + option + ": it cannot be read (" + e.getClass().getSimpleName() + ")");
    }
  }
}
