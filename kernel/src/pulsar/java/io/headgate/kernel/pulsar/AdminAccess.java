package io.headgate.kernel.pulsar;

import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.util.HashMap;
import java.util.Map;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.apache.pulsar.client.api.Authentication;
import org.apache.pulsar.client.api.AuthenticationDataProvider;
import org.apache.pulsar.client.api.AuthenticationFactory;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.common.util.SecurityUtility;

/**
 * How the admin service is told who asks, and how it is trusted: by what the client's own options say.
 *
 * @param login null where nobody logs in
 */
record AdminAccess(ClientOptions options, Map<String, Object> settings, Authentication login) {
  static AdminAccess of(ClientOptions options) {
    Map<String, Object> settings = options.client();
    Object plugin = settings.get("authPluginClassName");
    if (plugin == null) return new AdminAccess(options, settings, null);
    try {
      Authentication login = AuthenticationFactory.create(
          plugin.toString(), settings.getOrDefault("authParams", "").toString());
      login.start();
      return new AdminAccess(options, settings, login);
    } catch (PulsarClientException | RuntimeException e) {
      // The cause is left behind on purpose: nobody knows what its message quotes.
      throw new PulsarFailure(PulsarFailure.BAD_OPTION,
          "cannot log in at " + options.admin() + " by " + plugin + ": " + e.getClass().getSimpleName());
    }
  }

  /** Returns the headers of a request; asked each time, since a login may have to be fresh. */
  Map<String, String> headers() {
    var out = new HashMap<String, String>();
    if (login == null) return out;
    try {
      AuthenticationDataProvider data = login.getAuthData(java.net.URI.create(options.admin()).getHost());
      if (!data.hasDataForHttp()) return out;
      for (var each : data.getHttpHeaders()) out.put(each.getKey(), each.getValue());
      return out;
    } catch (Exception e) {
      throw new PulsarFailure(PulsarFailure.REFUSED,
          "cannot log in at " + options.admin() + ": " + e.getClass().getSimpleName());
    }
  }

  /** Returns what the service is trusted by, and the certificate that is shown to it where there is one. */
  SSLContext trust() {
    try {
      String store = text("tlsTrustStorePath");
      if (store != null) return trust(store);
      String trusted = text("tlsTrustCertsFilePath");
      Certificate[] certificates = trusted == null ? null : SecurityUtility.loadCertificatesFromPemFile(trusted);
      boolean insecure = Boolean.parseBoolean(text("tlsAllowInsecureConnection"));
      return SecurityUtility.createSslContext(insecure, certificates, own(), ownKey());
    } catch (GeneralSecurityException | IOException e) {
      throw new PulsarFailure(PulsarFailure.BAD_OPTION,
          "cannot trust " + options.admin() + ": its certificates cannot be read (" + e.getMessage() + ")");
    }
  }

  private SSLContext trust(String store) throws GeneralSecurityException, IOException {
    String type = text("tlsTrustStoreType");
    String password = text("tlsTrustStorePassword");
    KeyStore keys = KeyStore.getInstance(type == null ? "JKS" : type);
    try (InputStream in = new FileInputStream(store)) {
      keys.load(in, password == null ? null : password.toCharArray());
    }
    TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    trust.init(keys);
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, trust.getTrustManagers(), null);
    return context;
  }

  private Certificate[] own() throws GeneralSecurityException, IOException {
    AuthenticationDataProvider data = login == null ? null : login.getAuthData();
    if (data != null && data.hasDataForTls()) return data.getTlsCertificates();
    String file = text("tlsCertificateFilePath");
    return file == null ? null : SecurityUtility.loadCertificatesFromPemFile(file);
  }

  private PrivateKey ownKey() throws GeneralSecurityException, IOException {
    AuthenticationDataProvider data = login == null ? null : login.getAuthData();
    if (data != null && data.hasDataForTls()) return data.getTlsPrivateKey();
    String file = text("tlsKeyFilePath");
    return file == null ? null : SecurityUtility.loadPrivateKeyFromPemFile(file);
  }

  private String text(String name) {
    Object value = settings.get(name);
    return value == null ? null : value.toString();
  }

  /** Names the service alone: the settings hold secrets. */
  @Override public String toString() {
    return "access(" + options.admin() + ")";
  }
}
