package bentpipe;

/** kwik as an endpoint program, in socket mode only (endpoints/CONTRACT.md). */
public final class Main {
    private static final int UNSUPPORTED = 127;

    private Main() {}

    public static void main(String[] arguments) {
        System.exit(code(arguments));
    }

    private static int code(String[] arguments) {
        try {
            if (arguments.length == 1 && arguments[0].equals("--version")) {
                System.out.println("kwik " + tech.kwik.core.KwikVersion.getVersion());
                return 0;
            }
            if (arguments.length > 0) {
                System.err.println("usage: bentpipe-endpoint-kwik [--version]; endpoints/CONTRACT.md says what it does");
                return 2;
            }
            run(Setup.fromEnvironment(System.getenv()));
            return 0;
        } catch (Unsupported error) {
            System.err.println("bentpipe-endpoint-kwik: not supported: " + error.getMessage());
            return UNSUPPORTED;
        } catch (Exception error) {
            System.err.println("bentpipe-endpoint-kwik: " + described(error));
            return 1;
        }
    }

    private static void run(Setup setup) throws Exception {
        if (setup.role() == Setup.Role.CLIENT) {
            new Client(setup).run();
            return;
        }
        var server = new Server(setup);
        // On SIGTERM the virtual machine runs this, and would then exit with 143.
        Runnable end =
                () -> {
                    server.close();
                    Runtime.getRuntime().halt(0);
                };
        Runtime.getRuntime().addShutdownHook(new Thread(end));
        System.out.println("ready");
        Thread.currentThread().join();
    }

    private static String described(Throwable error) {
        String words = error.getMessage();
        return words == null ? error.toString() : error.getClass().getSimpleName() + ": " + words;
    }
}
