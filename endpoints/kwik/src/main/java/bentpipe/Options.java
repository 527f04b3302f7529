package bentpipe;

import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The options of the variant; null: as the library has it. */
record Options(Long window, boolean smallest, Duration migrate) {
    private static final Pattern TIME = Pattern.compile("([0-9]{1,7})(ms|s)");
    private static final Duration LATEST = Duration.ofHours(1);
    /** kwik wants more than a packet's worth; the connection's window is ten times as large. */
    private static final long SMALLEST_WINDOW = 1500;
    private static final long LARGEST_WINDOW = (1L << 62) / 10;

    /** A client with several paths may migrate from the first to the second. */
    static Options parse(String text, boolean mayMigrate) throws Unsupported {
        Map<String, String> left = new TreeMap<>();
        for (String word : text.isBlank() ? new String[0] : text.trim().split("\\s+")) {
            int equals = word.indexOf('=');
            if (equals < 0) {
                throw new IllegalArgumentException("BENTPIPE_OPTIONS: " + word + " has no `=`; write name=value");
            }
            left.put(word.substring(0, equals), word.substring(equals + 1));
        }
        only("cc", "newreno", left);
        boolean smallest = only("mtu", "1200", left);
        Long window = window(left.remove("window"));
        Duration migrate = migration(left.get("migrate"), mayMigrate);
        if (migrate != null) {
            left.remove("migrate");
        }
        if (!left.isEmpty()) {
            throw new Unsupported("option " + left.keySet().iterator().next() + ": unknown");
        }
        return new Options(window, smallest, migrate);
    }

    /** Whether the option is given, which knows one value. */
    private static boolean only(String name, String value, Map<String, String> left) throws Unsupported {
        String given = left.remove(name);
        if (given != null && !given.equals(value)) {
            throw new Unsupported("option " + name + " = " + given + ": write " + value);
        }
        return given != null;
    }

    private static Duration migration(String text, boolean mayMigrate) throws Unsupported {
        if (text == null) {
            return null;
        }
        if (!mayMigrate) {
            throw new Unsupported("option migrate: it is of a client, in a scenario with several paths");
        }
        Matcher time = TIME.matcher(text);
        if (time.matches()) {
            long count = Long.parseLong(time.group(1));
            Duration after = time.group(2).equals("s") ? Duration.ofSeconds(count) : Duration.ofMillis(count);
            if (after.compareTo(LATEST) <= 0) {
                return after;
            }
        }
        throw new Unsupported(
                "option migrate = " + text + ": write a time since the start up to an hour, such as 2s or 1500ms");
    }

    private static Long window(String text) throws Unsupported {
        try {
            Long window = text == null ? null : Long.valueOf(text);
            if (window == null || (window >= SMALLEST_WINDOW && window <= LARGEST_WINDOW)) {
                return window;
            }
        } catch (NumberFormatException error) {
            // said below
        }
        String range = SMALLEST_WINDOW + " to " + LARGEST_WINDOW;
        throw new Unsupported("option window = " + text + ": write a whole number from " + range);
    }
}
