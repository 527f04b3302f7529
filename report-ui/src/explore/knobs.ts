// The sliders of the path: how a slider's place becomes a setting of the scenario, and the other way round.

import type { Json } from "../model";
import type { ExploredState } from "../schema/explore";
import { setting, withSetting } from "./state";

/** How the places of a slider, 0 to 1, are spread over its values. */
export interface Scale {
  low: number;
  high: number;
  /** Each step multiplies; 0, if it is among the values, is the leftmost place. */
  log: boolean;
  zero?: boolean;
}

/** The share of a slider with a zero on which it stays there. */
const ZERO = 0.03;

export function valueAt(place: number, { low, high, log, zero }: Scale): number {
  if (zero && place <= ZERO) return 0;
  const share = zero ? (place - ZERO) / (1 - ZERO) : place;
  return log ? low * (high / low) ** share : low + (high - low) * share;
}

export function placeOf(value: number, { low, high, log, zero }: Scale): number {
  if (zero && value <= 0) return 0;
  const kept = Math.min(high, Math.max(low, value));
  const share = log ? Math.log(kept / low) / Math.log(high / low) : (kept - low) / (high - low);
  return zero ? ZERO + share * (1 - ZERO) : share;
}

/** A number with as many digits as a slider is worth. */
export function rounded(value: number): number {
  return value === 0 ? 0 : Number(value.toPrecision(value >= 100 ? 3 : 2));
}

const FACTORS: Record<string, number> = { "": 1, k: 1e3, M: 1e6, G: 1e9 };

/** `20 Mbit/s` in Mbit/s; null for a rate that changes, or is a carrier. */
export function megabits(rate: Json | undefined): number | null {
  const match = text(rate).match(/^([\d.]+) ?([kMG]?)bit\/s$/);
  return match ? (Number(match[1]) * FACTORS[match[2]!]!) / 1e6 : null;
}

const TIMES: Record<string, number> = { us: 1e-3, ms: 1, s: 1e3 };

/** `300 ms` in ms; null for a delay that changes. */
export function milliseconds(delay: Json | undefined): number | null {
  const match = text(delay).match(/^([\d.]+) ?(us|ms|s)$/);
  return match ? Number(match[1]) * TIMES[match[2]!]! : null;
}

/** `0.1 %` in percent; null for a loss that is a model of its own. */
export function percents(loss: Json | undefined): number | null {
  if (loss === undefined || loss === null || loss === "none") return 0;
  const match = text(loss).match(/^([\d.]+) ?%$/);
  return match ? Number(match[1]) : null;
}

function text(value: Json | undefined): string {
  return typeof value === "string" ? value.trim() : "";
}

export const QUEUE_UNITS = {
  packets: { low: 1, high: 10_000, log: true },
  BDP: { low: 0.01, high: 10, log: true },
  ms: { low: 1, high: 5_000, log: true },
  kB: { low: 1, high: 100_000, log: true },
} as const satisfies Record<string, Scale>;
export type QueueUnit = keyof typeof QUEUE_UNITS;

/** The disciplines that need no further key. */
export const DISCIPLINES = [
  "drop-tail",
  "head-drop",
  "codel",
  "fq",
  "fq-codel",
  "pie",
  "pi2",
  "dualpi2",
] as const;

export interface Queue {
  size: number;
  unit: QueueUnit;
  discipline: string;
  /** Further keys of the discipline, as they are written. */
  more: string;
}

/** The queue that a scenario has in full, or that a setting asks for; null for one that no slider has. */
export function queue(value: Json | undefined): Queue | null {
  if (typeof value === "string") {
    const table = value.trim().match(/^\{(.*)\}$/s);
    return table ? queueOfTable(table[1]!) : sized(value, "drop-tail", "");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const { size, aqm, ...rest } = value;
  const more = Object.entries(rest).map(([key, one]) => `${key}=${JSON.stringify(one)}`);
  if (typeof size !== "string" || (aqm !== undefined && typeof aqm !== "string")) return null;
  return sized(size, aqm ?? "drop-tail", more.join(", "));
}

/** `aqm="codel", size="1 BDP"` of an inline table whose values are texts or numbers. */
function queueOfTable(inside: string): Queue | null {
  const entries = [...inside.matchAll(/([\w-]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^,\s]+)/g)];
  const of = new Map(entries.map(([, key, value]) => [key!, value!]));
  const plain = (key: string) => of.get(key)?.replaceAll('"', "");
  const [size, aqm] = [plain("size"), plain("aqm") ?? "drop-tail"];
  if (size === undefined) return null;
  const more = [...of].filter(([key]) => key !== "size" && key !== "aqm");
  return sized(size, aqm, more.map(([key, value]) => `${key}=${value}`).join(", "));
}

function sized(size: string, discipline: string, more: string): Queue | null {
  const match = size.trim().match(/^([\d.]+) ?(packets|BDP|ms|s|kB|MB|B)$/);
  if (!match) return null;
  const number = Number(match[1]);
  const made = (size: number, unit: QueueUnit) => ({ size, unit, discipline, more });
  if (match[2] === "s") return made(number * 1e3, "ms");
  if (match[2] === "MB") return made(number * 1e3, "kB");
  if (match[2] === "B") return made(number / 1e3, "kB");
  return made(number, match[2] as QueueUnit);
}

/** A queue as a setting. */
export function queueText({ size, unit, discipline, more }: Queue): string {
  const amount = `${unit === "packets" ? Math.max(1, Math.round(size)) : size} ${unit}`;
  if (discipline === "drop-tail" && !more) return amount;
  const named = discipline === "drop-tail" ? [] : [`aqm="${discipline}"`];
  return `{${[...named, `size="${amount}"`, ...(more ? [more] : [])].join(", ")}}`;
}

/** Rain over the forward link: so much weaker from one time on, for some seconds. */
export interface Rain {
  dB: number;
  at: number;
  lasts: number;
}

export const DRY: Rain = { dB: 0, at: 1, lasts: 5 };

/**
 * What a carrier of DVB-S2X at 14 dB carries for each symbol: a link of a fixed rate becomes one when it rains, with so
 * many symbols that the rate in clear sky is the same.
 */
export const BITS_PER_SYMBOL = 3.7582846;
const CLEAR_DB = 14;
const RATE = "forward.rate";
const ATTENUATION = "forward.rate.attenuation";
const STEPS = /steps=\[\["0 s", ?"0 dB"\], ?\["([\d.]+) s", ?"([\d.]+) dB"\], ?\["([\d.]+) s", ?"0 dB"\]\]/;

function steps({ dB, at, lasts }: Rain): string {
  return `{steps=[["0 s", "0 dB"], ["${at} s", "${dB} dB"], ["${rounded(at + lasts)} s", "0 dB"]]}`;
}

/** The rain that a state has set. */
export function rain(state: ExploredState): Rain {
  const match = (setting(state, ATTENUATION) ?? setting(state, RATE))?.match(STEPS);
  if (!match) return DRY;
  const [at, dB, until] = match.slice(1).map(Number) as [number, number, number];
  return { dB, at, lasts: rounded(until - at) };
}

/** The rate in clear sky that a state has set, in Mbit/s; null if it set none. */
export function clearRate(state: ExploredState): number | null {
  const set = setting(state, RATE);
  const symbols = set?.match(/symbol_rate="([\d.]+) MBd"/);
  return symbols ? rounded(Number(symbols[1]) * BITS_PER_SYMBOL) : megabits(set ?? undefined);
}

/** The state with this rate in clear sky, in Mbit/s, and the rain that it has. */
export function withRate(state: ExploredState, mbits: number): ExploredState {
  return withSetting(state, RATE, rateText(mbits, rain(state)));
}

/** The state with this rain; `resolved` is the forward rate of the scenario in full. */
export function withRain(state: ExploredState, wanted: Rain, resolved: Json | undefined): ExploredState {
  const carrier = typeof resolved === "object" && resolved !== null && "standard" in resolved;
  const fixed = clearRate(state) ?? megabits(resolved);
  if (fixed !== null) return withSetting(state, RATE, rateText(fixed, wanted));
  if (!carrier) return state; // a rate that changes by itself has no carrier to rain on
  return withSetting(state, ATTENUATION, wanted.dB === 0 ? null : steps(wanted));
}

function rateText(mbits: number, wanted: Rain): string {
  if (wanted.dB === 0) return `${mbits} Mbit/s`;
  const symbols = Number((mbits / BITS_PER_SYMBOL).toPrecision(7));
  const carrier = `standard="dvb-s2x", symbol_rate="${symbols} MBd", es_n0="${CLEAR_DB} dB"`;
  return `{${carrier}, attenuation=${steps(wanted)}}`;
}
