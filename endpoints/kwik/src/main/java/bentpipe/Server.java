package bentpipe;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.DatagramSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import tech.kwik.core.QuicConnection;
import tech.kwik.core.QuicConnection.QuicVersion;
import tech.kwik.core.QuicStream;
import tech.kwik.core.log.NullLogger;
import tech.kwik.core.server.ApplicationProtocolConnection;
import tech.kwik.core.server.ApplicationProtocolConnectionFactory;
import tech.kwik.core.server.ServerConnectionConfig;
import tech.kwik.core.server.ServerConnector;

/** Answers `GET /path` with the file, or with RESET_STREAM; in `upload` it stores what `PUT /path` brings. */
final class Server implements AutoCloseable {
    /** A question longer than this is none. */
    private static final int LONGEST_QUESTION = 4096;

    private static final long REFUSED = 1;
    private static final int STREAMS = 100;
    /** Of kwik's own server. */
    private static final long STREAM_WINDOW = 1_000_000;

    private final ServerConnector connector;
    private final ExecutorService answering = Executors.newCachedThreadPool(Server::daemon);
    private final Folder www;
    private final Folder downloads;
    private final Secrets secrets;

    Server(Setup setup) throws Exception {
        boolean stores = setup.testCase() == Setup.TestCase.UPLOAD;
        www = stores ? null : new Folder(setup.file("WWW"));
        downloads = stores ? new Folder(setup.file("DOWNLOADS")) : null;
        secrets = new Secrets(setup.files().get("SSLKEYLOGFILE"));
        Path certs = setup.file("CERTS");
        connector =
                ServerConnector.builder()
                        .withSocket(new DatagramSocket(setup.server()))
                        .withKeyStore(Keys.server(certs), Keys.ALIAS, Keys.PASSWORD)
                        // kwik answers in version 2 a client that lists it first (RFC 9368, 2.3), and then refuses
                        // what comes in it, if it is not told to take version 2 besides version 1.
                        .withSupportedVersion(QuicVersion.V2)
                        .withConfiguration(configuration(setup.options()))
                        .withLogger(new NullLogger())
                        .build();
        connector.registerApplicationProtocol("hq-interop", new Factory());
        connector.start();
    }

    private static ServerConnectionConfig configuration(Options options) {
        long window = options.window() == null ? STREAM_WINDOW : options.window();
        return ServerConnectionConfig.builder()
                .maxBidirectionalStreamBufferSize(window)
                .maxConnectionBufferSize(10 * window)
                .maxOpenPeerInitiatedBidirectionalStreams(STREAMS)
                .retryRequired(ServerConnectionConfig.RetryRequired.Never)
                .useStrictSmallestAllowedMaximumDatagramSize(options.smallest())
                .build();
    }

    /** Ends the sockets' threads; kwik tells its clients. */
    @Override
    public void close() {
        connector.close();
    }

    private static Thread daemon(Runnable work) {
        Thread thread = new Thread(work, "answer");
        thread.setDaemon(true);
        return thread;
    }

    private final class Factory implements ApplicationProtocolConnectionFactory {
        @Override
        public ApplicationProtocolConnection createConnection(String protocol, QuicConnection connection) {
            secrets.write(connection);
            return new ApplicationProtocolConnection() {
                @Override
                public void acceptPeerInitiatedStream(QuicStream stream) {
                    answering.submit(() -> answer(stream));
                }
            };
        }

        @Override
        public int maxConcurrentPeerInitiatedUnidirectionalStreams() {
            return 0;
        }

        @Override
        public int maxConcurrentPeerInitiatedBidirectionalStreams() {
            return STREAMS;
        }
    }

    private void answer(QuicStream stream) {
        try {
            String[] question = question(stream.getInputStream()).split(" ", 2);
            boolean answered =
                    question.length == 2
                            && question[1].startsWith("/")
                            && (www == null ? stored(stream, question) : served(stream, question));
            if (!answered) {
                stream.resetStream(REFUSED);
                stream.abortReading(REFUSED);
            }
        } catch (IOException error) {
            // The client has gone, or wants no more of this: nobody is left to be told.
        }
    }

    private boolean served(QuicStream stream, String[] question) throws IOException {
        Path file = question[0].equals("GET") ? www.existing(question[1]) : null;
        if (file == null) {
            return false;
        }
        try (OutputStream out = stream.getOutputStream()) {
            Files.copy(file, out);
        }
        // kwik allows another stream when both sides of this one are at their end.
        stream.getInputStream().transferTo(OutputStream.nullOutputStream());
        return true;
    }

    private boolean stored(QuicStream stream, String[] question) throws IOException {
        Path file = question[0].equals("PUT") ? downloads.within(question[1]) : null;
        if (file == null) {
            return false;
        }
        Folder.store(stream.getInputStream(), file);
        stream.getOutputStream().close();
        return true;
    }

    /** The first line, without its end; empty if there is none. */
    private static String question(InputStream in) throws IOException {
        var line = new ByteArrayOutputStream();
        for (int next = in.read(); next >= 0 && line.size() < LONGEST_QUESTION; next = in.read()) {
            if (next == '\n') {
                return line.toString(StandardCharsets.UTF_8).stripTrailing();
            }
            line.write(next);
        }
        // A request may end with FIN in place of a line's end.
        return line.size() < LONGEST_QUESTION ? line.toString(StandardCharsets.UTF_8).stripTrailing() : "";
    }
}
