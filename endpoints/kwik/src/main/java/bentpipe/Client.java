package bentpipe;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import tech.kwik.core.QuicClientConnection;
import tech.kwik.core.QuicClientConnection.StreamEarlyData;
import tech.kwik.core.QuicSessionTicket;
import tech.kwik.core.QuicStream;
import tech.kwik.core.impl.QuicClientConnectionImpl;

/** Asks for everything at once, or for the first request and then, over a second connection, for the others. */
final class Client {
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    private final Setup setup;
    private final KeyStore authority;
    private final Secrets secrets;
    private final boolean sends;
    private final Folder folder;
    private final long begin = ProcessHandle.current().info().startInstant().orElseGet(Instant::now).toEpochMilli();
    private final ExecutorService waiting = Executors.newCachedThreadPool(Client::daemon);
    /** The first thing that went wrong. */
    private String failure;

    Client(Setup setup) throws Exception {
        this.setup = setup;
        authority = Keys.authority(setup.file("CERTS"));
        secrets = new Secrets(setup.files().get("SSLKEYLOGFILE"));
        sends = setup.testCase() == Setup.TestCase.UPLOAD;
        folder = new Folder(setup.file(sends ? "WWW" : "DOWNLOADS"));
        for (String path : setup.paths()) {
            file(path);
        }
    }

    void run() throws Exception {
        List<String> paths = setup.paths();
        if (!setup.testCase().resumes()) {
            exchange(paths, null, false);
        } else {
            QuicSessionTicket ticket = exchange(paths.subList(0, 1), null, true);
            exchange(paths.subList(1, paths.size()), ticket, false);
        }
        if (failure != null) {
            throw new IOException(failure);
        }
    }

    /** One connection with its requests; its ticket, if one is wanted. */
    private QuicSessionTicket exchange(List<String> paths, QuicSessionTicket ticket, boolean wantsTicket)
            throws Exception {
        QuicClientConnection connection = connection(ticket);
        List<QuicStream> early = List.of();
        if (ticket != null && setup.testCase() == Setup.TestCase.ZERORTT) {
            early = connection.connect(paths.stream().map(path -> new StreamEarlyData(question(path), true)).toList());
        } else {
            connection.connect();
        }
        secrets.write(connection);
        if (setup.options().migrate() != null) {
            waiting.submit(() -> migrate((QuicClientConnectionImpl) connection));
        }
        var answers = new ArrayList<Future<?>>();
        for (int index = 0; index < paths.size(); index++) {
            String path = paths.get(index);
            // Those for which the remembered limits have no room come after the handshake.
            QuicStream asked = index < early.size() ? early.get(index) : null;
            // This waits until the server allows another stream.
            QuicStream stream = asked == null ? connection.createStream(true) : asked;
            answers.add(waiting.submit(() -> answer(stream, path, asked != null)));
        }
        for (Future<?> answer : answers) {
            await(answer);
        }
        QuicSessionTicket received = wantsTicket ? ticket(connection) : null;
        close(connection);
        return received;
    }

    /** Goes on from the address on the second path when it is time. Without the PING kwik may have nothing to say there. */
    private Void migrate(QuicClientConnectionImpl connection) throws InterruptedException {
        Thread.sleep(Math.max(0, setup.options().migrate().toMillis() - (System.currentTimeMillis() - begin)));
        if (connection.isConnected()) {
            connection.nextDestinationConnectionId();
            connection.changeAddress();
            connection.ping();
        }
        return null;
    }

    private QuicClientConnection connection(QuicSessionTicket ticket) throws IOException {
        var builder = new QuicClientConnectionImpl.ExtendedBuilder();
        if (setup.options().smallest()) {
            builder.useStrictSmallestAllowedMaximumDatagramSize();
        }
        if (setup.options().window() != null) {
            builder.defaultStreamReceiveBufferSize(setup.options().window());
        }
        InetAddress address = setup.server().getAddress();
        // A proxy, in kwik, is the address that packets go to, in place of the name's.
        builder.host("server").port(setup.server().getPort()).proxy(address.getHostAddress());
        builder.applicationProtocol("hq-interop").customTrustStore(authority).connectTimeout(PATIENCE);
        Thread connecting = Thread.currentThread();
        var moved = new AtomicBoolean();
        builder.socketFactory(
                any ->
                        moved.getAndSet(true)
                                ? new DatagramSocket(0, setup.locals().get(1)) // asked for by changeAddress
                                : new WaitingSocket(connecting));
        if (address instanceof java.net.Inet6Address) {
            builder.preferIPv6();
        }
        if (ticket != null) {
            builder.sessionTicket(ticket);
        }
        return builder.build();
    }

    /** Sends the question, unless it was sent early, and stores the answer. */
    private Void answer(QuicStream stream, String path, boolean asked) throws IOException {
        if (!asked) {
            try (OutputStream out = stream.getOutputStream()) {
                out.write(question(path));
                if (sends) {
                    Files.copy(file(path), out);
                }
            }
        }
        InputStream in = stream.getInputStream();
        if (!sends) {
            Folder.store(in, file(path));
        } else if (in.read() >= 0) {
            throw new IOException("answered with bytes, where none belong");
        }
        return null;
    }

    private void await(Future<?> answer) throws InterruptedException {
        try {
            answer.get();
        } catch (ExecutionException error) {
            fail(String.valueOf(error.getCause()));
        }
    }

    private byte[] question(String path) {
        return ((sends ? "PUT " : "GET ") + path + "\r\n").getBytes(StandardCharsets.UTF_8);
    }

    private Path file(String path) {
        Path file = sends ? folder.existing(path) : folder.within(path);
        if (file == null) {
            throw new IllegalArgumentException("REQUESTS: " + path + ": it must name a file within the folder");
        }
        return file;
    }

    /** The ticket comes after the handshake, and kwik does not tell when. */
    private static QuicSessionTicket ticket(QuicClientConnection connection) throws Exception {
        long begin = System.nanoTime();
        while (connection.getNewSessionTickets().isEmpty()) {
            if (System.nanoTime() - begin > PATIENCE.toNanos() || !connection.isConnected()) {
                throw new IOException("the server sent no session ticket");
            }
            Thread.sleep(1);
        }
        return connection.getNewSessionTickets().get(0);
    }

    private static void close(QuicClientConnection connection) throws InterruptedException {
        connection.close(0, null);
        Thread.sleep(20);
    }

    private void fail(String words) {
        failure = failure == null ? words : failure;
    }

    private static Thread daemon(Runnable work) {
        Thread thread = new Thread(work, "answer");
        thread.setDaemon(true);
        return thread;
    }
}
