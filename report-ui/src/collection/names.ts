// What things are called in the site.

import { workload } from "../header";
import type { Measure, RunEntry, Site } from "./model";

/** A cell in a line; what all cells of the site have in common is left out. */
export function cellTitle(site: Site, cell: number): { pair: string; setting: string } {
  const one = site.cells[cell]!;
  const differs = (key: "workload" | "treatment") => site.cells.some((other) => other[key] !== one[key]);
  const parts = [
    one.scenario,
    ...(differs("workload") ? [workload(one)] : []),
    ...(differs("treatment") && one.treatment !== "direct" ? [one.treatment] : []),
  ];
  return { pair: `${one.client} → ${one.server}`, setting: parts.join(", ") };
}

/** Date and time of a start in UTC, without seconds. */
export function when(run: RunEntry): string {
  return run.started.replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d).*$/, "$1 $2");
}

/** As people read a column: those that can be compared have a title, of others the name says the unit. */
export function measureOf(site: Site, column: string, largest = 0): Measure {
  const known = site.measures.find((one) => one.column === column);
  if (known) return known;
  const [, suffix = ""] = column.match(/_(bps|bytes|s|ms|share)$/) ?? [];
  const [factor, unit, digits] = UNITS[suffix]?.(largest) ?? [1, "", 2];
  const stem = unit ? column.slice(0, -suffix.length - 1) : column;
  const words = stem
    .replaceAll("_", " ")
    .replace(/\brtt\b/g, "RTT")
    .replace(/\bcpu\b/g, "CPU");
  return { column, title: unit ? `${words} in ${unit}` : words, factor, digits };
}

const UNITS: Record<string, (largest: number) => [factor: number, unit: string, digits: number]> = {
  bps: () => [1e-6, "Mbit/s", 3],
  bytes: (largest) => (largest >= 1e6 ? [1e-6, "MB", 3] : [1e-3, "kB", 2]),
  s: () => [1, "s", 4],
  ms: () => [1, "ms", 2],
  share: () => [100, "percent", 1],
};

/** A value in the unit of its measure; a dash where there is none. */
export function shown(measure: Measure, value: number | null): string {
  return value === null ? "–" : (value * measure.factor).toFixed(measure.digits);
}
