// Data that is loaded when it is wanted is a script that assigns a global, since a page from the file system may not
// fetch.

import { h } from "./dom";

/** Run the script at `source` and take what it left; an Error if it is missing, or leaves nothing. */
export function runScript<T>(source: string, take: () => T | undefined, again: string): Promise<T> {
  const script = h("script", { src: source });
  const done = new Promise<T>((resolve, reject) => {
    const missing = () => reject(new Error(`${source} is missing; make the ${again} again`));
    script.addEventListener("load", () => {
      // A script's load event comes before any other script runs.
      const found = take();
      if (found === undefined) missing();
      else resolve(found);
    });
    script.addEventListener("error", missing);
  });
  document.head.append(script);
  return done.finally(() => script.remove());
}
