package bentpipe;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;

/** The folder of files that are sent, or of those that come. */
final class Folder {
    private final Path folder;

    Folder(Path folder) throws IOException {
        this.folder = folder.toRealPath();
    }

    /** The file that `path` means, if there is one within the folder; null otherwise. */
    Path existing(String path) {
        try {
            Path file = folder.resolve(path.substring(1)).toRealPath();
            return file.startsWith(folder) && Files.isRegularFile(file) ? file : null;
        } catch (IOException | InvalidPathException error) {
            return null;
        }
    }

    /** The file below the folder that `path` means, which need not exist; null if it leads out, also by a link. */
    Path within(String path) {
        try {
            Path relative = Path.of(path.substring(1));
            Path file = folder;
            for (Path part : relative) {
                file = file.resolve(part);
                if (part.toString().equals("..") || part.toString().equals(".") || Files.isSymbolicLink(file)) {
                    return null;
                }
            }
            boolean names = !relative.isAbsolute() && !path.endsWith("/") && !file.equals(folder);
            return names && !Files.isDirectory(file) ? file : null;
        } catch (InvalidPathException error) {
            return null;
        }
    }

    /** Stores what comes in `file`, which is made when its first byte or its end comes. */
    static void store(InputStream from, Path file) throws IOException {
        byte[] buffer = new byte[1 << 16];
        int count = from.read(buffer);
        Files.createDirectories(file.getParent());
        try (OutputStream to = Files.newOutputStream(file)) {
            for (; count >= 0; count = from.read(buffer)) {
                to.write(buffer, 0, count);
            }
        }
    }
}
