package bentpipe;

import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;

/** The trial's certificates and key in the form that Java wants. */
final class Keys {
    static final String ALIAS = "server";
    /** A key store wants one, for a key that lies beside it in plain text. */
    static final char[] PASSWORD = "bentpipe".toCharArray();

    private Keys() {}

    /** What a client trusts. */
    static KeyStore authority(Path certs) throws Exception {
        KeyStore store = empty();
        int count = 0;
        for (Certificate certificate : chain(certs.resolve("ca.pem"))) {
            store.setCertificateEntry("ca" + count++, certificate);
        }
        return store;
    }

    /** What a server shows: kwik's TLS knows RSA and ECDSA. */
    static KeyStore server(Path certs) throws Exception {
        KeyStore store = empty();
        store.setKeyEntry(ALIAS, key(certs.resolve("priv.key")), PASSWORD, chain(certs.resolve("cert.pem")));
        return store;
    }

    private static KeyStore empty() throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null);
        return store;
    }

    private static Certificate[] chain(Path pem) throws Exception {
        try (InputStream in = Files.newInputStream(pem)) {
            return CertificateFactory.getInstance("X.509").generateCertificates(in).toArray(Certificate[]::new);
        }
    }

    private static PrivateKey key(Path pem) throws Exception {
        String text = Files.readString(pem).replaceAll("-----[A-Z ]+-----|\\s", "");
        var encoded = new PKCS8EncodedKeySpec(Base64.getDecoder().decode(text));
        for (String algorithm : new String[] {"EC", "RSA"}) {
            try {
                return KeyFactory.getInstance(algorithm).generatePrivate(encoded);
            } catch (GeneralSecurityException error) {
                // the next one, then
            }
        }
        throw new GeneralSecurityException(pem + ": neither an EC nor an RSA key in PKCS #8");
    }
}
