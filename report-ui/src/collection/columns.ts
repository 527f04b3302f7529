// The columns of all trials, each in a script that is loaded when it is wanted.
//
// `python/bentpipe/report/collection/columns.py` writes them: 32-bit floats, little-endian, their first bytes together,
// then their second ones and so on, compressed with zlib, in base64.

import { inflate } from "../inflate";
import { runScript } from "../script";
import type { PackedColumn } from "./model";

/** What a trial is, as a number of the site's lists. */
export type Code = "run" | "cell" | "testbed" | "outcome" | "alpn" | "seed";

const loaded = new Map<string, Promise<Float32Array>>();

/** A column by its code's name, or by its place among the site's columns; NaN where a trial has no value. */
export function column(name: Code | number): Promise<Float32Array> {
  const source = `data/columns/${name}.js`;
  const known = loaded.get(source);
  if (known) return known;
  const promise = runScript(source, take, "site").then(unpack);
  loaded.set(source, promise);
  promise.catch(() => loaded.delete(source));
  return promise;
}

function take(): PackedColumn | undefined {
  const found = window.bentpipeColumn;
  delete window.bentpipeColumn;
  return found;
}

/** The values of a script. RangeError if it holds more or fewer than it says. */
export async function unpack({ count, base64 }: PackedColumn): Promise<Float32Array> {
  const planes = new Uint8Array(await inflate(base64));
  if (planes.length !== 4 * count) throw new RangeError(`${planes.length} bytes of ${count} numbers`);
  const bytes = new Uint8Array(planes.length);
  for (let plane = 0; plane < 4; plane++)
    for (let i = 0; i < count; i++) bytes[4 * i + plane] = planes[plane * count + i]!;
  return new Float32Array(bytes.buffer);
}
