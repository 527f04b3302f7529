// The folder of files that are sent, or of those that come.
import fs from "node:fs";
import path from "node:path";

/** The file that `name` means, if there is one within the folder; null otherwise. */
export function existing(folder, name) {
  try {
    const root = fs.realpathSync(folder);
    const file = fs.realpathSync(path.join(root, name));
    return file.startsWith(root + path.sep) && fs.statSync(file).isFile() ? file : null;
  } catch {
    return null;
  }
}

/** The file below the folder that `name` means, its folders made; null if it leads out, also by a link. */
export function within(folder, name) {
  const parts = name.slice(1).split("/");
  if (parts.some((part) => ["", ".", ".."].includes(part))) return null;
  let file = fs.realpathSync(folder);
  for (const part of parts) {
    file = path.join(file, part);
    if (fs.lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink()) return null;
  }
  if (fs.statSync(file, { throwIfNoEntry: false })?.isDirectory()) return null;
  fs.mkdirSync(path.dirname(file), { recursive: true });
  return file;
}
