// The numbers of a trial's plots: all columns behind each other, as differences in 32-bit integers, compressed.
//
// `python/bentpipe/report/columns.py` writes them. Little-endian, as every machine that runs a browser today.

import { inflate } from "../inflate";

/** Where a column lies among the integers. A value is `unit` times the sum of the integers up to it. */
export interface Column {
  at: number;
  count: number;
  unit: number;
}

/** All integers of a trial, from the base64 of their zlib stream. */
export async function integers(base64: string): Promise<Int32Array> {
  return new Int32Array(await inflate(base64));
}

/** The values of a column. RangeError if the trial's data ends before it. */
export function values(all: Int32Array, { at, count, unit }: Column): Float64Array {
  if (at + count > all.length)
    throw new RangeError(`a column ends at ${at + count} of ${all.length} numbers`);
  const found = new Float64Array(count);
  let sum = 0;
  for (let i = 0; i < count; i++) {
    sum += all[at + i]!;
    found[i] = sum * unit;
  }
  return found;
}
