// Leave out of a plot what nobody could see, so that 100,000 points cost no more than the pixels they cover.
//
// Dots: the first on each pixel. Lines: the first, least, greatest and last value of each column of
// pixels, which draws the same line (M4: U. Jugel et al., "M4: a visualization-oriented time series data aggregation",
// PVLDB 7(10), 2014). Ranges: what they cover together in each column. All want their times in order.

import type { Span } from "./window";

/** What a plot shows, and on how many pixels. */
export interface View extends Span {
  low: number;
  high: number;
  width: number;
  height: number;
}

/** The first index whose value is at least `limit`. */
export function firstFrom(sorted: Float64Array, limit: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Indices of the values inside `span`: from the first to before the second. */
export function inside(times: Float64Array, span: Span): [begin: number, end: number] {
  return [firstFrom(times, span.from), firstFrom(times, span.to + 1e-9)];
}

/** Which pixels have a dot. Kept from one drawing to the next: as garbage, it would make the hand wait. */
let taken = new Uint8Array(0);

/** Times and values in turn, of the dots that can be told apart. */
export function dots(times: Float64Array, values: Float64Array, view: View): Float64Array {
  const columns = Math.max(1, Math.ceil(view.width)) + 1;
  const rows = Math.max(1, Math.ceil(view.height)) + 1;
  if (taken.length < columns * rows) taken = new Uint8Array(columns * rows);
  else taken.fill(0, 0, columns * rows);
  const [begin, end] = inside(times, view);
  const perSecond = (columns - 1) / (view.to - view.from);
  const perUnit = (rows - 1) / (view.high - view.low);
  const kept: number[] = [];
  for (let i = begin; i < end; i++) {
    const [time, value] = [times[i]!, values[i]!];
    if (value < view.low || value > view.high) continue;
    const cell =
      Math.floor((value - view.low) * perUnit) * columns + Math.floor((time - view.from) * perSecond);
    if (taken[cell]) continue;
    taken[cell] = 1;
    kept.push(time, value);
  }
  return Float64Array.from(kept);
}

/** Times and values in turn, of a line that looks the same; with a point to each side of the window. */
export function line(times: Float64Array, values: Float64Array, view: View): Float64Array {
  const [first, last] = inside(times, view);
  const [begin, end] = [Math.max(0, first - 1), Math.min(times.length, last + 1)];
  const columns = Math.max(1, Math.ceil(view.width));
  const perSecond = columns / (view.to - view.from);
  const column = (i: number) => Math.floor((times[i]! - view.from) * perSecond);
  const kept: number[] = [];
  for (let i = begin; i < end;) {
    const here = column(i);
    let [least, most, last] = [i, i, i];
    for (let k = i + 1; k < end && column(k) === here; k++) {
      if (values[k]! < values[least]!) least = k;
      if (values[k]! > values[most]!) most = k;
      last = k;
    }
    const [early, late] = [Math.min(least, most), Math.max(least, most)];
    kept.push(times[i]!, values[i]!);
    if (early > i) kept.push(times[early]!, values[early]!);
    if (late > early) kept.push(times[late]!, values[late]!);
    if (last > late) kept.push(times[last]!, values[last]!);
    i = last + 1;
  }
  return Float64Array.from(kept);
}

/** Ranges at their times: values from `low` to `high`. */
export interface Ranges {
  times: Float64Array;
  low: Float64Array;
  high: Float64Array;
}

/** Vertical strokes, as times and values in turn with a gap (NaN) behind each. */
export function strokes({ times, low, high }: Ranges, view: View): Float64Array {
  const columns = Math.max(1, Math.ceil(view.width));
  const rows = Math.max(1, Math.ceil(view.height));
  const perSecond = columns / (view.to - view.from);
  const perUnit = rows / (view.high - view.low);
  const [begin, end] = inside(times, view);
  const kept: number[] = [];
  const edges = new Int32Array(rows + 2); // +1 where a range begins, -1 behind where it ends
  const row = (value: number) => Math.min(rows, Math.max(0, Math.floor((value - view.low) * perUnit)));
  for (let i = begin; i < end;) {
    const here = Math.floor((times[i]! - view.from) * perSecond);
    edges.fill(0);
    const time = times[i]!;
    for (; i < end && Math.floor((times[i]! - view.from) * perSecond) === here; i++) {
      if (high[i]! < view.low || low[i]! > view.high) continue;
      edges[row(low[i]!)]!++;
      edges[row(high[i]!) + 1]!--;
    }
    let [depth, start] = [0, 0];
    for (let k = 0; k <= rows + 1; k++) {
      const next = depth + (edges[k] ?? 0);
      if (depth === 0 && next > 0) start = k;
      if (depth > 0 && next === 0) {
        kept.push(time, view.low + start / perUnit, time, view.low + k / perUnit, NaN, NaN);
      }
      depth = next;
    }
  }
  return Float64Array.from(kept);
}

/** The least and greatest of the values inside a window; null if there are none. */
export function extent(times: Float64Array, values: Float64Array, span: Span): [number, number] | null {
  const [begin, end] = inside(times, span);
  if (begin >= end) return null;
  let [low, high] = [Infinity, -Infinity];
  for (let i = begin; i < end; i++) {
    const value = values[i]!;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

/** Round ends and a round step for an axis that holds `low` to `high` in about `ticks` steps. */
export function roundAxis(
  low: number,
  high: number,
  ticks: number,
): { min: number; max: number; interval: number } {
  const span = high > low ? high - low : Math.abs(high) || 1;
  const rough = span / ticks;
  const power = 10 ** Math.floor(Math.log10(rough));
  const interval = power * ([1, 2, 5].find((step) => step * power >= rough) ?? 10);
  const min = Math.floor(low / interval) * interval;
  return { min, max: Math.max(min + interval, Math.ceil(high / interval) * interval), interval };
}
