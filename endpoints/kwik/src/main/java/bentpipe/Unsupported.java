package bentpipe;

/** A role, test case, option or option value that this program does not have: exit code 127. */
final class Unsupported extends Exception {
    private static final long serialVersionUID = 1;

    Unsupported(String what) {
        super(what);
    }
}
