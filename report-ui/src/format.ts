// Numbers with their units, as people read them. A narrow no-break space stands between number and unit.

import type { Json } from "./model";

const GAP = "\u202f";

/** Digits behind the point that leave about three figures. */
export function decimals(value: number): number {
  const size = Math.abs(value);
  return size >= 100 ? 0 : size >= 10 ? 1 : 2;
}

export function mbits(bps: number, places = decimals(bps / 1e6)): string {
  return (bps / 1e6).toFixed(places);
}

/** A rate that was set, such as that of a link. */
export function rate(bps: number): string {
  return bps < 1e6 ? `${trim(bps / 1e3)}${GAP}kbit/s` : `${trim(bps / 1e6)}${GAP}Mbit/s`;
}

/** A measured rate, always in Mbit/s. */
export function goodput(bps: number): string {
  return `${mbits(bps)}${GAP}Mbit/s`;
}

export function percent(ratio: number): string {
  const value = ratio * 100;
  return `${value !== 0 && Math.abs(value) < 9.95 ? value.toFixed(1) : value.toFixed(0)}${GAP}%`;
}

export function seconds(s: number): string {
  return s !== 0 && Math.abs(s) < 1 ? `${trim(s * 1e3)}${GAP}ms` : `${trim(s)}${GAP}s`;
}

/** A measured time: unlike `seconds` it keeps zeros behind the point, so that columns line up. */
export function duration(s: number): string {
  const [value, unit] = s !== 0 && Math.abs(s) < 1 ? [s * 1e3, "ms"] : [s, "s"];
  return `${value.toFixed(decimals(value))}${GAP}${unit}`;
}

/** Why a trial that succeeded may have no goodput. */
export const NO_GOODPUT =
  "no goodput: the file fits into one flight, which is too short to give a rate below that of the path, " +
  "or its packets could not be decoded";

/** Binary units where they are exact, as file sizes are given; decimal ones otherwise. */
export function bytes(n: number): string {
  if (n >= 1 << 20 && n % (1 << 20) === 0) return `${n / (1 << 20)}${GAP}MiB`;
  if (n >= 1024 && n % 1024 === 0 && n < 1 << 20) return `${n / 1024}${GAP}KiB`;
  if (n >= 1e6) return `${trim(n / 1e6)}${GAP}MB`;
  return n >= 1e4 ? `${trim(n / 1e3)}${GAP}kB` : `${n}${GAP}B`;
}

/** At most three figures behind which nothing is lost that matters, and no trailing zeros. */
function trim(value: number): string {
  return String(Number(value.toFixed(decimals(value))));
}

const UNITS: [suffix: string, show: (value: number) => string][] = [
  ["_bps", rate],
  ["_bytes", bytes],
  ["_ratio", (ratio) => `${Number((ratio * 100).toPrecision(3))}${GAP}%`],
  ["_packets", (n) => `${n}${GAP}packets`],
  ["_ms", (ms) => `${trim(ms)}${GAP}ms`],
  ["_ns", (ns) => seconds(ns / 1e9)],
  ["_s", seconds],
];

/** A key such as `forward_rate_bps` as its words and its value with the unit that the key carries. */
export function quantity(key: string, value: Json): { name: string; text: string } {
  const unit = UNITS.find(([suffix]) => key.endsWith(suffix));
  if (unit && typeof value === "number") {
    return { name: words(key.slice(0, -unit[0].length)), text: unit[1](value) };
  }
  return {
    name: words(key),
    text: value === null ? "none" : typeof value === "object" ? JSON.stringify(value) : String(value),
  };
}

function words(key: string): string {
  const text = key.replaceAll("_", " ");
  return text.replace(/\brtt\b/g, "RTT").replace(/\bcpu\b/g, "CPU");
}

/** A value in words; a dash where there is none. */
export function maybe(value: number | null, show: (value: number) => string): string {
  return value === null ? "–" : show(value);
}
