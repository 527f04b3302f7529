package bentpipe;

import java.util.Map;
import java.util.TreeMap;

/** The options of the variant; null: as the library has it. */
record Options(Long window, boolean smallest) {
    /** kwik wants more than a packet's worth; the connection's window is ten times as large. */
    private static final long SMALLEST_WINDOW = 1500;
    private static final long LARGEST_WINDOW = (1L << 62) / 10;

    static Options parse(String text) throws Unsupported {
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
        if (!left.isEmpty()) {
            throw new Unsupported("option " + left.keySet().iterator().next() + ": unknown");
        }
        return new Options(window, smallest);
    }

    /** Whether the option is given, which knows one value. */
    private static boolean only(String name, String value, Map<String, String> left) throws Unsupported {
        String given = left.remove(name);
        if (given != null && !given.equals(value)) {
            throw new Unsupported("option " + name + " = " + given + ": write " + value);
        }
        return given != null;
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
