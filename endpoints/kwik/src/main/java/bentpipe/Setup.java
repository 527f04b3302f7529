package bentpipe;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** What a trial asks of the program, from the environment (endpoints/contract/socket-mode.md). */
record Setup(
        Role role,
        TestCase testCase,
        List<String> paths,
        InetSocketAddress server,
        List<InetAddress> locals,
        Options options,
        Map<String, Path> files) {
    enum Role {
        CLIENT,
        SERVER
    }

    enum TestCase {
        TRANSFER,
        HANDSHAKE,
        LONGRTT,
        MULTIPLEXING,
        RESUMPTION,
        ZERORTT,
        UPLOAD;

        /** Whether there is a second connection with the ticket of the first. */
        boolean resumes() {
            return this == RESUMPTION || this == ZERORTT;
        }
    }

    private static final List<String> FILES = List.of("WWW", "DOWNLOADS", "CERTS", "SSLKEYLOGFILE");

    static Setup fromEnvironment(Map<String, String> environment) throws Unsupported {
        Role role = word(Role.class, "ROLE", environment);
        TestCase testCase = word(TestCase.class, "TESTCASE", environment);
        List<InetAddress> locals = locals(environment.getOrDefault("BENTPIPE_PATHS", ""));
        boolean mayMigrate = role == Role.CLIENT && locals.size() > 1;
        Options options = Options.parse(environment.getOrDefault("BENTPIPE_OPTIONS", ""), mayMigrate);
        var paths = new ArrayList<String>();
        InetSocketAddress server = role == Role.SERVER ? address(needed("BENTPIPE_LISTEN", environment)) : null;
        if (role == Role.CLIENT) {
            for (String request : needed("REQUESTS", environment).trim().split("\\s+")) {
                server = server == null ? address(split(request)[0]) : server;
                paths.add(split(request)[1]);
            }
        }
        var files = new java.util.HashMap<String, Path>();
        for (String name : FILES) {
            String value = environment.getOrDefault(name, "");
            if (!value.isEmpty()) {
                files.put(name, Path.of(value));
            }
        }
        return new Setup(role, testCase, List.copyOf(paths), server, locals, options, Map.copyOf(files));
    }

    /** The client's address on each of several paths; empty where there is one. */
    private static List<InetAddress> locals(String text) {
        var locals = new ArrayList<InetAddress>();
        for (String word : text.isBlank() ? new String[0] : text.trim().split("\\s+")) {
            try {
                // A literal address is not looked up anywhere.
                locals.add(InetAddress.getByName(word.substring(word.indexOf('=') + 1)));
            } catch (UnknownHostException error) {
                throw new IllegalArgumentException("BENTPIPE_PATHS: " + word + ": write NAME=ADDRESS", error);
            }
        }
        return List.copyOf(locals);
    }

    /** A file or folder that this side cannot do without. */
    Path file(String name) {
        Path path = files.get(name);
        if (path == null) {
            throw new IllegalArgumentException(name + ": this environment variable must be set (endpoints/CONTRACT.md)");
        }
        return path;
    }

    private static <E extends Enum<E>> E word(Class<E> words, String name, Map<String, String> environment)
            throws Unsupported {
        String value = needed(name, environment);
        for (E word : words.getEnumConstants()) {
            if (word.name().toLowerCase(java.util.Locale.ROOT).equals(value)) {
                return word;
            }
        }
        throw new Unsupported(name + " = " + value);
    }

    private static String needed(String name, Map<String, String> environment) {
        String value = environment.get(name);
        if (value == null) {
            throw new IllegalArgumentException(name + ": this environment variable must be set (endpoints/CONTRACT.md)");
        }
        return value;
    }

    /** The authority and the path of a URL. */
    private static String[] split(String url) {
        String rest = url.startsWith("https://") ? url.substring("https://".length()) : "";
        int slash = rest.indexOf('/');
        if (slash < 0) {
            throw new IllegalArgumentException("REQUESTS: " + url + ": write URLs such as https://127.0.0.1:4433/1024");
        }
        return new String[] {rest.substring(0, slash), rest.substring(slash)};
    }

    /** `127.0.0.1:4433` or `[::1]:4433`. */
    private static InetSocketAddress address(String text) {
        int colon = text.lastIndexOf(':');
        try {
            // A literal address is not looked up anywhere.
            InetAddress host = InetAddress.getByName(text.substring(0, Math.max(colon, 0)));
            return new InetSocketAddress(host, Integer.parseInt(text.substring(colon + 1)));
        } catch (UnknownHostException | IllegalArgumentException error) {
            throw new IllegalArgumentException(text + ": write an IP address and a port, such as 127.0.0.1:4433", error);
        }
    }
}
