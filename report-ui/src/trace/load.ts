// A trial's trace is a script of its own, since a page from the file system may not fetch.

import { h } from "../dom";
import { read, type Trace } from "./model";

const loaded = new Map<string, Promise<Trace>>();

/** Load and read the script at `source`, once. */
export function load(source: string): Promise<Trace> {
  const known = loaded.get(source);
  if (known) return known;
  const promise = run(source);
  loaded.set(source, promise);
  promise.catch(() => loaded.delete(source));
  return promise;
}

function run(source: string): Promise<Trace> {
  const script = h("script", { src: source });
  const done = new Promise<Trace>((resolve, reject) => {
    const missing = () => reject(new Error(`${source} is missing; make the report again`));
    script.addEventListener("load", () => {
      // A script's load event comes before any other script runs.
      const found = window.bentpipeTrial;
      delete window.bentpipeTrial;
      if (found) resolve(read(found));
      else missing();
    });
    script.addEventListener("error", missing);
  });
  document.head.append(script);
  return done.finally(() => script.remove());
}
