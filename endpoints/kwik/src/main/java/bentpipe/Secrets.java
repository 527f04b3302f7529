package bentpipe;

import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import tech.kwik.agent15.engine.TrafficSecrets;
import tech.kwik.agent15.handshake.ClientHello;
import tech.kwik.agent15.handshake.HandshakeMessage;
import tech.kwik.core.QuicConnection;
import tech.kwik.core.crypto.CryptoStream;
import tech.kwik.core.impl.QuicConnectionImpl;

/**
 * TLS secrets in the NSS key log format, of a connection whose handshake is complete.
 *
 * kwik itself writes them for clients alone, without those of early data, and over what is in the file. All of it is in the
 * connection, in fields that are not public.
 */
final class Secrets {
    private final Path keylog;

    /** `keylog` may be null: then nothing is written. */
    Secrets(Path keylog) {
        this.keylog = keylog;
    }

    void write(QuicConnection connection) {
        if (keylog == null) {
            return;
        }
        try {
            TrafficSecrets secrets = (TrafficSecrets) field(connection, "tlsEngine");
            String random = HexFormat.of().formatHex(clientHello((QuicConnectionImpl) connection).getClientRandom());
            List<String> lines = new ArrayList<>();
            add(lines, "CLIENT_EARLY_TRAFFIC_SECRET", random, secrets.getClientEarlyTrafficSecret());
            add(lines, "CLIENT_HANDSHAKE_TRAFFIC_SECRET", random, secrets.getClientHandshakeTrafficSecret());
            add(lines, "SERVER_HANDSHAKE_TRAFFIC_SECRET", random, secrets.getServerHandshakeTrafficSecret());
            add(lines, "CLIENT_TRAFFIC_SECRET_0", random, secrets.getClientApplicationTrafficSecret());
            add(lines, "SERVER_TRAFFIC_SECRET_0", random, secrets.getServerApplicationTrafficSecret());
            Files.write(keylog, lines, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (ReflectiveOperationException | IOException error) {
            System.err.println("bentpipe-endpoint-kwik: no TLS secrets: " + error);
        }
    }

    private static void add(List<String> lines, String label, String random, byte[] secret) {
        if (secret != null) {
            lines.add(label + " " + random + " " + HexFormat.of().formatHex(secret));
        }
    }

    private static ClientHello clientHello(QuicConnectionImpl connection) throws ReflectiveOperationException {
        List<?> streams = (List<?>) field(connection, "cryptoStreams");
        CryptoStream initial = (CryptoStream) streams.get(0);
        for (String direction : List.of("messagesReceived", "messagesSent")) {
            for (Object message : (List<?>) field(initial, direction)) {
                if (message instanceof ClientHello hello) {
                    return hello;
                }
            }
        }
        throw new NoSuchFieldException(HandshakeMessage.class.getSimpleName() + " with a ClientHello");
    }

    private static Object field(Object object, String name) throws ReflectiveOperationException {
        for (Class<?> type = object.getClass(); type != null; type = type.getSuperclass()) {
            for (Field field : type.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    field.setAccessible(true);
                    return field.get(object);
                }
            }
        }
        throw new NoSuchFieldException(name);
    }
}
